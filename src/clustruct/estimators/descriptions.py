"""What parameters, arguments and attributes of estimators are, written once, in numpydoc's form.

Entries of the same name in several tables are for different uses; see `clustruct._docs`.
"""

# ---- Parameters of constructors

ALL = """
max_iter : int
    Largest number of iterations of a solver.
tol : float
    A solver stops when an iteration lowers the objective by less than this fraction of it.
solver_options : dict
    Options of the solver, see Notes of the regressor.
random_state : int, RandomState instance or None
    Seed of the random starts.
verbose : int or bool
    1 tells on standard error, now and then, how much is done and the best so far, and prints the
    status and the certificate; 2 also prints each iteration.
callback : callable
    Called with each `Iteration`; returning True ends the fit.
alpha : float
    Strength of the ridge penalty, on the scale of the mean loss.
loss : {"squared", "huber", "poisson", "gamma", "tweedie", "quantile"} or Loss
    Half the squared residual; the Huber loss, which is linear beyond `huber_delta`; half the
    deviance of counts ("poisson"), of positive amounts ("gamma") or of amounts that may be zero
    ("tweedie"), with the logarithm as link; the pinball loss of a quantile; or an object that
    defines another loss.
prove : bool
    Whether to prove by branch and bound that no other grouping has a lower objective, for squared
    loss; a better one that is found on the way is taken. See Notes of the regressor.
huber_delta : float
    Residual at which the Huber loss turns linear, in the units of ``y``.
tweedie_power : float
    Power of the mean that the variance is proportional to, between 1 and 2, for the Tweedie loss.
quantile_level : float
    The quantile that is predicted, between 0 and 1, for the quantile loss.
quantile_smoothing : float
    Width over which the pinball loss is smoothed, in units of the interquartile range of ``y``.
    Smaller ones are closer to the quantile, and harder to search with.
class_weight : dict or "balanced"
    Weights of the classes, which multiply those of the samples.
n_init : "auto" or int
    Number of random starts; "auto" goes on until the best objective was reached twice.
n_jobs : int
    Number of parallel jobs, as in joblib. The result does not depend on it.
"""

CLASSES = """
loss : {"logistic", "squared"} or Loss
    Logistic (multinomial for more than two classes), squared on targets -1 and 1, or an object
    that defines another loss.
"""

SEARCH = """
cv : int, splitter or iterable
    Number of folds (stratified for classes), a splitter of scikit-learn, or pairs of indices. An
    integer makes shuffled folds where `random_state` is given, and folds in the order of the
    samples otherwise.
scoring : str or callable
    Score to maximise: a name that scikit-learn knows, or a function of model, samples and targets.
    None takes the score of the loss: ``"neg_mean_squared_error"`` for squared and Huber loss, the
    negative mean deviance for counts and amounts (such as ``"neg_mean_poisson_deviance"``), the
    negative mean pinball loss for quantiles, ``"neg_log_loss"`` for logistic loss, ``"accuracy"``
    for squared loss of classes. Scores that accept weights get `sample_weight`.
n_jobs : int
    Number of folds that are fitted in parallel, as in joblib. The result does not depend on it.
random_state : int, RandomState instance or None
    Seed of the folds and of the random starts.
verbose : int or bool
    1 tells on standard error, now and then, how many folds or fits are done, the time left and the
    best score so far, and prints the status and the certificate; 2 also prints each iteration of
    the final fit.
callback : callable
    Called with each `Iteration` of a fit to all samples; returning True ends that fit.
"""

FEATURES = """
n_clusters : int, mapping or None
    Largest number of distinct weights. With `blocks`, the number in all blocks together, or a
    mapping from block to number; with factors, the same for these. None sets no limit.
alpha : float or "auto"
    Strength of the ridge penalty, on the scale of the mean loss. "auto", for factors with one
    output, gives each factor the strength that empirical Bayes finds for the effects of its levels.
price : float
    What each group after the first of a factor costs, on the scale of the mean loss, in place of
    `n_clusters`: groups are kept that lower the objective by more. For factors with one output.
n_nonzero : int
    Largest number of features with a nonzero weight; None for no limit. Weight zero does not count
    as a group.
blocks : array-like of shape (n_features,)
    A block for each feature: weights are shared only inside a block. -1 leaves a feature alone.
constraint : object
    A set of weights with its projection, see "Extending". It replaces the one that `n_clusters`,
    `n_nonzero` and `blocks` define; a search then varies alpha only.
categorical_features : "from_dtype", array-like or None
    Columns of a data frame whose values are levels of a factor: by their type (category, text, and
    boolean beside these), by name or number, or as a mask; None for none. Levels are grouped inside
    their column, numeric columns keep their own weight.
factors : mapping from str to str or Factor
    Kinds of factors by column: ``"nominal"``, ``"ordinal"`` (as ordered categories are),
    ``"increasing"``, ``"decreasing"``, ``"cyclic"``, or a `Factor`. Numeric columns that are named
    become factors, each distinct value a level.
fit_intercept : bool
    Whether to add an intercept, which is neither penalised nor clustered.
solver : {"auto", "bcd", "greedy", "pg", "cg", "cgpg", "soft"}
    How the groups are found, see Notes of `FeatureClusterRegressor`.
init : {"auto", "greedy", "zeros"} or array-like
    Where ``"pg"`` begins: at the weights without constraint ("auto" or "greedy"), at zero, or at
    given weights, shaped as `coef_`.
n_init : "auto" or int
    Number of starts of ``"pg"``, and of message passing in each turn of ``"soft"``.
"""

FEATURE_SEARCH = """
n_clusters : int or sequence, default=(2, 3, ..., 15)
    Numbers of groups to try; with `blocks` or factors, each an integer or a mapping. Totals that do
    not give every factor a group are left out. None is a weight for every feature, without groups.
prices : "auto", float, sequence of float or None
    Prices of a group to try where there are factors and one output, in place of `n_clusters`.
    "auto" takes 24, from the price that keeps all factors out down to a thousandth of it; None
    tries `n_clusters` there, too.
alphas : "auto", float or sequence of float
    Strengths of the ridge penalty to try. With prices, "auto" takes 3, 1 and 0.3 times the strength
    that empirical Bayes finds for each factor. Otherwise it takes ten, half a decade apart, on the
    scale of the loss: from ten times its mean curvature (for squared loss the mean variance of the
    columns) down.
n_nonzero : int, None or sequence
    Largest numbers of nonzero weights to try; None for no limit.
relax : float or sequence of float
    Fractions of alpha to try for the values of the groups, see Notes.
rule : {"best", "fewest", "one_se"}
    The candidate with the best mean score; the best one with the fewest groups that are not
    clearly worse, see Notes; or the simplest one within a standard error of the best: with the
    fewest groups, then the fewest nonzero weights, then the largest alpha.
criterion : {"cv", "bic", "ebic"}
    Cross-validation, or the plain or extended Bayesian information criterion of fits to all
    samples, which is quicker, see Notes.
search_solver : str
    Solver of the fits that are only scored. "auto" takes `solver`; where that is "auto" or "soft",
    it takes "pg" with few trials if the Gram matrix is computed, and "greedy" otherwise, for
    classes only at points that may be chosen; see Notes.
class_weight : dict or "balanced"
    Weights of the classes, which multiply those of the samples in the fits, not in the scores.
"""

SAMPLES = """
n_clusters : int
    Number of experts.
gate : bool or classifier
    Learns from ``x`` which expert predicts: any classifier with ``predict_proba``, or True for
    logistic regression. None or False gives all samples the same weights of the experts.
fit_intercept : bool
    Whether each expert has intercepts, which are not penalised.
solver : {"auto", "am", "pg", "cg", "rc", "em"}
    How experts are found, see Notes of `SampleClusterRegressor`.
random_state : int, RandomState instance or None
    Seed of the random starts, and of the folds of the gate.
"""

SAMPLE_SEARCH = """
n_clusters : int or sequence of int
    Numbers of experts to try; impossible ones are left out: there are at most as many experts as
    samples, and fewer than classes.
rule : {"fewest", "best", "one_se"}
    The fewest experts that are as good as the best number: within one standard error by ``"cv"``,
    otherwise by a difference that is not worth a mention; the best number; or the fewest within
    one standard error, by ``"cv"`` only.
criterion : {"bic+icl", "bic", "icl", "cv"}
    Bayesian information criterion of a mixture of linear models (BIC), the same with a price on
    overlap (integrated completed likelihood, ICL), the two together, or cross-validation, see
    Notes.
cv : int, splitter or iterable
    Folds for ``criterion="cv"``; an integer makes folds in the order of the samples.
scoring : str or callable
    Score to maximise with ``criterion="cv"``: a name that scikit-learn knows, or a function of
    model, samples and targets, for `predict`. None compares the loss of the best expert, see
    Notes.
n_jobs : int
    Number of parallel jobs, as in joblib: folds or fits of the search, and starts of the final
    fit. The result does not depend on it.
"""

TASKS = """
n_clusters : int
    Largest number of groups. With one, tasks lie near their common mean.
alpha : float
    Strength of the ridge penalty on the weights of every task.
alpha_mean : float or "auto"
    Strength of the penalty on the mean of the centroids, at most `alpha_between`; "auto" is the
    same.
alpha_between : float or "auto"
    Strength of the penalty on the distance of the centroids from their mean; "auto" is a tenth of
    the unit, see Notes.
alpha_within : float or "auto"
    Strength of the penalty on the distance of tasks from their group's centroid, infinite for
    tasks that share one predictor; "auto" is three units.
alpha_intercept : float or "auto"
    Strength of the penalty on the distance of a task's intercept from those of its group, and of
    the groups' from each other. Zero leaves them free; their mean is always free. "auto" lets it
    weigh as much as two samples of a task.
fit_intercept : bool
    Whether each task has an intercept.
use_inputs : bool
    Whether the tasks' mean inputs tell groups apart, too, with ``solver="em"``.
solver : {"auto", "am", "pg", "cg", "em"}
    How groups are found, see Notes of `TaskClusterRegressor`. With "em" strengths are learnt, and
    the number of groups, at most `n_clusters`, is chosen by evidence.
"""

TASK_CLASSES = """
loss : {"logistic", "squared", "huber"} or Loss
    Logistic, squared or Huber on targets -1 and 1, or an object that defines another loss.
"""

TASK_SEARCH = """
n_clusters : int or sequence of int
    Numbers of groups to try; those beyond the number of tasks are left out. A mixture takes as many
    as it has evidence for, at most the largest of them: `n_clusters_` says how many these are,
    ``best_params_["n_clusters"]`` is the least number tried that allows them.
alpha : float or sequence of float
    Strengths of the ridge penalty on the weights of every task.
alpha_mean : float, sequence of float or "auto"
    Strengths of the penalty on the mean of the centroids; "auto" is that of `alpha_between`.
alpha_between : float, sequence of float or "auto"
    Strengths of the penalty on the distance of the centroids from their mean; "auto" is two
    numbers on the scale of the data.
alpha_within : float, sequence of float or "auto"
    Strengths of the penalty on the distance of tasks from their group's centroid; "auto" is six
    numbers on the scale of the data.
cv : int, splitter or iterable
    Folds of the samples; an integer asks for shuffled folds that are alike in tasks and classes.
scoring : str or callable
    Score to maximise, with each held-out sample predicted by its own task: a name that scikit-
    learn knows, or a function of targets, scores and numbers of tasks, where classes are -1 and 1.
    None takes the negative mean loss.
use_inputs : bool or "auto"
    Whether mixtures are also tried with the tasks' mean inputs as evidence of groups; "auto" uses
    the inputs if they and the labels have groups in common, by evidence, and looks for that where
    it is quick: up to a million for the number of tasks times features cubed. With rows without
    labels, the folds decide.
rule : {"fewest", "best", "one_se"}
    The fewest groups that are not clearly worse than the best number, see Notes; the best
    candidate; or the simplest one within a standard error of it: with the fewest groups, then the
    largest strengths.
n_jobs : int
    Number of parallel jobs, as in joblib: folds, and starts of the final fit. The result does not
    depend on it.
criterion : {"cv"}
    Cross-validation. Information criteria are not defined for tasks, see Notes.
"""

# ---- Arguments of methods

ARGUMENTS = """
X : {array-like, sparse matrix, data frame} of shape (n_samples, n_features)
    Samples.
y : array-like of shape (n_samples,) or (n_samples, n_outputs)
    Targets.
sample_weight : array-like of shape (n_samples,)
    Weights of the samples; an integer weight counts as that many repetitions.
offset : array-like of shape (n_samples,) or (n_samples, n_outputs)
    Numbers that are added to the scores of the samples before the inverse link, such as the
    logarithm of the exposure for rates. None stands for 0, also where `fit` had an offset.
groups : array-like of shape (n_samples,)
    Ids of samples that belong together, for splitters that make use of them.
"""

CLASS_ARGUMENTS = """
y : array-like of shape (n_samples,)
    Classes.
"""

TASK_ARGUMENTS = """
y : array-like of shape (n_samples,) or (n_samples, n_tasks)
    Targets: with `tasks`, one for each sample; without, a column for each task, with NaN or None
    where there is no target.
tasks : array-like of shape (n_samples,)
    Id of the task of each sample. A classifier fitted to a vector without ids has the classes
    for tasks, two of them for one task.
unlabelled : pair of array-like, default=None
    Inputs of rows without targets, of shape (n_rows, n_features), and the id of the task of each,
    in memory. With ``use_inputs=True`` they make the mean inputs of tasks known better.
"""

# ---- Attributes

FITTED = """
n_clusters_ : int
    Groups in use.
objective_ : float
    Objective of the fit.
certificate_ : Certificate
    A proven lower bound of the best possible objective, and the gap to it.
n_iter_ : int
    Iterations of the solver.
status_ : Status
    How the fit was made, and how it ended.
trace_ : tuple of Iteration
    Objective, step and time of each iteration.
has_offset_ : bool
    Whether the fit had an offset.
n_features_in_ : int
    Number of features.
feature_names_in_ : ndarray of shape (n_features,)
    Names of the features, if they are strings.
"""

SEARCHED = """
best_params_ : dict
    The parameters that were chosen.
best_score_ : float
    Their mean score over the folds, or their negative criterion.
best_index_ : int
    Their index into the columns of `cv_results_`.
cv_results_ : dict
    Scores of all candidates in the form of scikit-learn's searches: for
    ``pandas.DataFrame(model.cv_results_)``.
"""

OF_CLASSES = """
classes_ : ndarray of shape (n_classes,)
    The classes.
"""

OF_NUMBERS = """
coef_ : ndarray of shape (n_features,) or (n_outputs, n_features)
    Weights.
intercept_ : float or ndarray of shape (n_outputs,)
    Intercept.
"""

OF_CLASS_WEIGHTS = """
coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
    Weights.
intercept_ : ndarray of shape (1,) or (n_classes,)
    Intercepts.
classes_ : ndarray of shape (n_classes,)
    The classes.
"""

OF_RIDGE = """
alpha_ : float
    The ridge chosen; the values of the groups are fitted with ``relax_ * alpha_``.
relax_ : float
    The fraction chosen.
factor_order_ : list of (str, float) or None
    Of a search over prices: each factor with more than one group on the way down to the price
    chosen, with the largest price at which it had, the first one first.
"""

OF_FEATURES = """
factors_ : FactorColumns or None
    Factors of a data frame: names, kinds, levels and their shares of the weight. The weights, in
    `coef_` and `labels_`, are then those of the levels of each factor, followed by the numeric
    columns. A missing value is a level of its own if one was seen in `fit`; any other value without
    a level has the mean effect of the levels, weighted by their shares. None for numbers alone.
labels_ : ndarray of shape (n_features,)
    Group of each feature, -1 for weight zero by `n_nonzero`.
cluster_values_ : ndarray of shape (n_groups,) or (n_groups, n_outputs)
    Weight of each group, ascending.
cluster_sizes_ : ndarray of shape (n_groups,)
    Number of features in each group.
n_clusters_ : int
    Groups in use. Features left alone by `blocks` are groups of one.
"""

OF_SAMPLES = """
experts_ : ndarray of shape (n_experts, n_features) or (n_experts, n_outputs, n_features)
    Weights of the experts, those with the most samples first. For classes there are always
    outputs: one for two classes, otherwise one a class.
intercepts_ : ndarray of shape (n_experts,) or (n_experts, n_outputs)
    Their intercepts.
weights_ : ndarray of shape (n_experts,)
    Shares of the experts in the samples' weight, descending.
labels_ : ndarray of shape (n_samples,)
    Expert of each sample.
n_clusters_ : int
    Experts in use; fewer than asked for where more could not improve the fit.
certificate_ : Certificate
    A proven lower bound of the best possible objective; with intercepts nothing is proved.
gate_ : classifier
    The fitted gate, if there is one.
gate_score_ : GateScore
    What the gate is worth, on samples that it had not seen.
"""

OF_TASKS = """
coef_ : ndarray of shape (n_tasks, n_features)
    Weights of each task.
intercept_ : ndarray of shape (n_tasks,)
    Intercepts of the tasks.
tasks_ : ndarray of shape (n_tasks,)
    Ids of the tasks, sorted; numbers or names of the columns of ``Y``.
labels_ : ndarray of shape (n_tasks,)
    Group of each task, the largest group first.
cluster_sizes_ : ndarray of shape (n_groups,)
    Tasks in each group.
centroids_ : ndarray of shape (n_groups, n_features)
    Weights that the tasks of a group are near.
centroid_intercepts_ : ndarray of shape (n_groups,)
    Intercepts of the centroids.
mean_coef_ : ndarray of shape (n_features,)
    Mean of the centroids over the tasks: the weights for unknown tasks.
mean_intercept_ : float
    The intercept for unknown tasks.
alpha_mean_ : float
    Strength in use, as are `alpha_between_`, `alpha_within_` and `alpha_intercept_`. With
    ``solver="em"``, strengths that would draw as much as the variances learnt, their median over
    the features.
responsibilities_ : ndarray of shape (n_tasks, n_groups)
    Probability of each group for each task; with ``solver="em"`` only, as are the next ones.
proportions_ : ndarray of shape (n_groups,)
    Probability of each group for a task of which nothing is known.
spreads_ : ndarray of shape (n_groups, n_features)
    Standard deviation of the weights within each group.
spread_intercepts_ : ndarray of shape (n_groups,)
    The same for the tasks' scores at the mean of all rows.
noise_ : float
    Scale of the noise: its variance for the squared loss, 1 for classes.
evidence_ : float
    Lower bound of the log-evidence of all rows.
"""
