"""All experiments, in the order of the paper."""

from clustruct.experiments.experiment import Experiment
from clustruct.experiments.paper.convergence import CONVERGENCE
from clustruct.experiments.paper.phase import PHASE
from clustruct.experiments.paper.table1 import TABLE1
from clustruct.experiments.paper.table4 import TABLE4
from clustruct.experiments.paper.table5 import TABLE5
from clustruct.experiments.paper.tables2_3 import TABLE2, TABLE3

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (TABLE1, TABLE2, TABLE3, TABLE4, TABLE5, CONVERGENCE, PHASE)
}
