"""Assignments: questions with locked settings, answers found in files of strangers, and grades.

Uses `claims` to judge and the base modules; `views` shows its records. It knows no HTML and no
command line, and whatever a student hands in stays data: it is read within limits, never run.
"""

from heedful.assignments.assignment import Assignment, AssignmentQuestion, Credit, load_assignment
from heedful.assignments.grading import CourseGrades, Grade, GradedSubmission, grade, grade_text
from heedful.assignments.submission import (
    StudentAnswer,
    Submission,
    find_submissions,
    read_submission,
)

__all__ = [
    "Assignment",
    "AssignmentQuestion",
    "CourseGrades",
    "Credit",
    "Grade",
    "GradedSubmission",
    "StudentAnswer",
    "Submission",
    "find_submissions",
    "grade",
    "grade_text",
    "load_assignment",
    "read_submission",
]
