from heedful.api import ask as ask
from heedful.api import attend as attend
from heedful.api import check as check
from heedful.api import claim as claim
from heedful.api import design as design
from heedful.api import load as load
from heedful.api import noise as noise
from heedful.api import study as study
from heedful.api import train as train
from heedful.api import translate as translate
from heedful.attention import AttentionResult as AttentionResult
from heedful.attention import Certificate as Certificate
from heedful.attention import Design as Design
from heedful.attention import LayerCheck as LayerCheck
from heedful.attention import NoiseStudy as NoiseStudy
from heedful.attention import check_layer as check_layer
from heedful.claims import CheckReport as CheckReport
from heedful.claims import Claim as Claim
from heedful.claims import Counterexample as Counterexample
from heedful.claims import Repair as Repair
from heedful.claims import Verdict as Verdict
from heedful.errors import HeedfulError as HeedfulError
from heedful.records import Record as Record

__version__: str
