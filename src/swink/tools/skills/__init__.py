"""Skills for any agent: folders with instructions that a model enters when a task calls for them.

    agent = Agent("anthropic:claude-sonnet-4-5", tools=[*skill_tools("skills")])

Their form is that of Agent Skills (agentskills.io); `check_skill` judges as the published validator does.
"""

from swink.tools.skills.skillfile import BadSkill as BadSkill
from swink.tools.skills.skillfile import InvalidSkill as InvalidSkill
from swink.tools.skills.skillfile import Skill as Skill
from swink.tools.skills.skillfile import SkillProblem as SkillProblem
from swink.tools.skills.skillfile import check_skill as check_skill
from swink.tools.skills.skillfile import find_skill_file as find_skill_file
from swink.tools.skills.skillfile import parse_skill as parse_skill
from swink.tools.skills.skillfile import read_skills as read_skills
from swink.tools.skills.skillindex import search_skills as search_skills
from swink.tools.skills.skillindex import write_index as write_index
from swink.tools.skills.skilltools import enter_text as enter_text
from swink.tools.skills.skilltools import entered_skills as entered_skills
from swink.tools.skills.skilltools import list_files as list_files
from swink.tools.skills.skilltools import make_skill_tools as make_skill_tools
from swink.tools.skills.skilltools import skill_tools as skill_tools
