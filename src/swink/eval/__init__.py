"""Evaluation: cases, what an agent does with them, scorers, statistics and reports."""

from swink.eval.case import Case as Case
from swink.eval.case import CaseBudget as CaseBudget
from swink.eval.case import Environment as Environment
from swink.eval.case import Evaluator as Evaluator
from swink.eval.case import ExpectedCall as ExpectedCall
from swink.eval.case import ExpectedResponse as ExpectedResponse
from swink.eval.case import SimulatedTool as SimulatedTool
from swink.eval.case import SimulatedUser as SimulatedUser
from swink.eval.case import Suite as Suite
from swink.eval.result import CaseResult as CaseResult
from swink.eval.score import Metric as Metric
from swink.eval.score import Score as Score
from swink.eval.score import Verdict as Verdict
from swink.eval.scorers import Panel as Panel
from swink.eval.scorers import Scorer as Scorer
from swink.eval.scorers import problem_of as problem_of
from swink.eval.scorers import scorer as scorer
from swink.eval.trajectory import TakenCall as TakenCall
from swink.eval.trajectory import Trajectory as Trajectory
