"""French conjugation: present, imparfait, participles and imperatives, regular and irregular.

Persons are numbered 0 to 5: je, tu, il, nous, vous, ils. The imparfait is made from the first
person plural of the present (nous mange-ons, je mange-ais); être is the one exception.
"""

from __future__ import annotations

from functools import cache

_IRREGULAR = """
être suis es est sommes êtes sont été
avoir ai as a avons avez ont eu
aller vais vas va allons allez vont allé
faire fais fais fait faisons faites font fait
pouvoir peux peux peut pouvons pouvez peuvent pu
vouloir veux veux veut voulons voulez veulent voulu
devoir dois dois doit devons devez doivent dû
savoir sais sais sait savons savez savent su
venir viens viens vient venons venez viennent venu
tenir tiens tiens tient tenons tenez tiennent tenu
prendre prends prends prend prenons prenez prennent pris
mettre mets mets met mettons mettez mettent mis
lire lis lis lit lisons lisez lisent lu
écrire écris écris écrit écrivons écrivez écrivent écrit
boire bois bois boit buvons buvez boivent bu
voir vois vois voit voyons voyez voient vu
connaître connais connais connaît connaissons connaissez connaissent connu
conduire conduis conduis conduit conduisons conduisez conduisent conduit
construire construis construis construit construisons construisez construisent construit
traduire traduis traduis traduit traduisons traduisez traduisent traduit
recevoir reçois reçois reçoit recevons recevez reçoivent reçu
ouvrir ouvre ouvres ouvre ouvrons ouvrez ouvrent ouvert
offrir offre offres offre offrons offrez offrent offert
cueillir cueille cueilles cueille cueillons cueillez cueillent cueilli
partir pars pars part partons partez partent parti
sortir sors sors sort sortons sortez sortent sorti
dormir dors dors dort dormons dormez dorment dormi
servir sers sers sert servons servez servent servi
courir cours cours court courons courez courent couru
suivre suis suis suit suivons suivez suivent suivi
rire ris ris rit rions riez rient ri
dire dis dis dit disons dites disent dit
croire crois crois croit croyons croyez croient cru
peindre peins peins peint peignons peignez peignent peint
éteindre éteins éteins éteint éteignons éteignez éteignent éteint
asseoir assieds assieds assied asseyons asseyez asseyent assis
"""
_FORMS = {entry.split()[0]: tuple(entry.split()[1:]) for entry in _IRREGULAR.strip().splitlines()}
_PREFIXED = {
    "devenir": ("de", "venir"),
    "revenir": ("re", "venir"),
    "apprendre": ("ap", "prendre"),
    "comprendre": ("com", "prendre"),
    "promettre": ("pro", "mettre"),
    "sourire": ("sou", "rire"),
}
_DOUBLING = frozenset(("appeler", "jeter", "rappeler"))
_ENDINGS = ("ais", "ais", "ait", "ions", "iez", "aient")
_FIRST_GROUP = ("e", "es", "e", "ons", "ez", "ent")
_SECOND_GROUP = ("is", "is", "it", "issons", "issez", "issent")
_THIRD_GROUP = ("s", "s", "", "ons", "ez", "ent")


@cache
def forms(infinitive: str) -> tuple[str, ...]:
    """Return the six forms of the present and the past participle.

    >>> forms("acheter")[:4]
    ('achète', 'achètes', 'achète', 'achetons')
    >>> forms("comprendre")[5:]
    ('comprennent', 'compris')
    """
    if infinitive in _FORMS:
        return _FORMS[infinitive]
    if infinitive in _PREFIXED:
        prefix, root = _PREFIXED[infinitive]
        return tuple(prefix + form for form in forms(root))
    stem, ending = infinitive[:-2], infinitive[-2:]
    if ending == "er":
        return _first_group(infinitive, stem)
    if ending == "ir":
        return (*(stem + one for one in _SECOND_GROUP), stem + "i")
    return (*(stem + one for one in _THIRD_GROUP), stem + "u")


def _first_group(infinitive: str, stem: str) -> tuple[str, ...]:
    weak = _silent_stem(infinitive, stem)
    soft = {"g": stem + "e", "c": stem[:-1] + "ç"}.get(stem[-1], stem)
    singular = [weak + ending for ending in _FIRST_GROUP[:3]]
    return (*singular, soft + "ons", stem + "ez", weak + "ent", stem + "é")


def _silent_stem(infinitive: str, stem: str) -> str:
    """Return the stem before a silent ending: achèt-, appell-, préfèr-, nettoi-."""
    if infinitive in _DOUBLING:
        return stem + stem[-1]
    if stem.endswith(("oy", "uy", "ay")):
        return stem[:-1] + "i"
    if len(stem) > 2 and stem[-2] in "eé" and stem[-1] not in "aeiouyé":
        return stem[:-2] + "è" + stem[-1]
    return stem


@cache
def present(infinitive: str, person: int) -> str:
    """Return one form of the present."""
    return forms(infinitive)[person]


@cache
def imperfect(infinitive: str, person: int) -> str:
    """Return one form of the imparfait.

    >>> imperfect("manger", 2), imperfect("manger", 3), imperfect("finir", 0)
    ('mangeait', 'mangions', 'finissais')
    """
    if infinitive == "être":
        return "ét" + _ENDINGS[person]
    stem = forms(infinitive)[3].removesuffix("ons")
    # The e of mangeons and the ç of commençons stand only before a, so not before ions and iez.
    if person in (3, 4) and infinitive.endswith(("ger", "cer")):
        stem = infinitive[:-2]
    return stem + _ENDINGS[person]


def participle(infinitive: str, gender: str = "m", plural: bool = False) -> str:
    """Return the past participle in agreement.

    >>> participle("prendre", "f", True), participle("devoir", "f")
    ('prises', 'due')
    """
    form = forms(infinitive)[6]
    if gender == "f":
        form = ("du" if form == "dû" else form) + "e"
    return form + "s" if plural and not form.endswith("s") else form


def imperative(infinitive: str, person: int) -> str:
    """Return the imperative for tu (1), nous (3) or vous (4).

    >>> imperative("manger", 1), imperative("aller", 1), imperative("prendre", 1)
    ('mange', 'va', 'prends')
    """
    form = present(infinitive, person)
    drops_s = person == 1 and (form.endswith("es") or infinitive == "aller")
    return form[:-1] if drops_s else form
