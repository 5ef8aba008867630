"""Scorers: what an attempt is worth, by rules, by code that runs, by models that judge.

case + trajectory ──→ scorers that the case names, or that apply ──→ Score | float | bool ──→ Metric
                          └─ judges, panels of models that give a verdict
"""

from swink.eval.scorers.applying import score as score
from swink.eval.scorers.calibration import Agreement as Agreement
from swink.eval.scorers.calibration import Calibration as Calibration
from swink.eval.scorers.calibration import Label as Label
from swink.eval.scorers.calibration import calibrate as calibrate
from swink.eval.scorers.calibration import cohen_kappa as cohen_kappa
from swink.eval.scorers.calibration import fleiss_kappa as fleiss_kappa
from swink.eval.scorers.calibration import load_labels as load_labels
from swink.eval.scorers.calibration import panel_agreement as panel_agreement
from swink.eval.scorers.footprint import budget as budget
from swink.eval.scorers.footprint import environment_state as environment_state
from swink.eval.scorers.judges import JudgeModel as JudgeModel
from swink.eval.scorers.judges import Panel as Panel
from swink.eval.scorers.registry import Scorer as Scorer
from swink.eval.scorers.registry import find_scorer as find_scorer
from swink.eval.scorers.registry import problem_of as problem_of
from swink.eval.scorers.registry import scorer as scorer
from swink.eval.scorers.registry import scorer_names as scorer_names
from swink.eval.scorers.rubrics import RUBRICS as RUBRICS
from swink.eval.scorers.trajectories import efficiency as efficiency
from swink.eval.scorers.trajectories import used_skill as used_skill
