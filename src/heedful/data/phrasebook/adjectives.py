"""The adjectives: agreement, place, English, and what each can be said of.

One entry reads `masculine/feminine/masculine plural/before a vowel = english`; forms that follow
the rules are left out. The three places are before the noun (une petite maison), after it (une
maison blanche), and after a verb only (elle est fatiguée).
"""

from __future__ import annotations

from typing import NamedTuple

from heedful.data.phrasebook.nouns import BY_LEMMA, CLASSES, Noun

_PEOPLE = "person kin parent"
_TABLE: tuple[tuple[str, str, str], ...] = (
    # place, nouns it is said of (classes, or nouns after `:`), entries
    ("before", "thing furniture clothing vehicle home room pet wild fruit sweet nature dishes "
     "plant", "petit = small"),
    ("before", "furniture home room wild nature building luggage", "grand = big"),
    ("before", "home clothing nature sight plant music pet : bijou tableau bague collier bracelet "
     "guitare vase poème histoire jardin cheval", "beau/belle/beaux/bel = beautiful"),
    ("before", "home clothing plant : bijou bague collier bracelet vase chambre village place "
     "jardin boîte tasse photo mélodie chanson", "joli = pretty"),
    ("before", "thing clothing vehicle home furniture text show music dishes pair matter shop",
     "nouveau/nouvelle/nouveaux/nouvel = new"),
    ("before", "thing clothing vehicle home furniture text pair sight pet building music : homme "
     "femme voisin voisine fermier écrivain arbre",
     "vieux/vieille/vieux/vieil = old"),
    ("before", "pet farm wild : homme femme acteur actrice avocat avocate médecin musicien "
     "musicienne pilote", "jeune = young"),
    ("before", "fruit savoury sweet text show music shop : vin café fromage pain bière idée "
     "exemple médecin avocat professeur acteur réponse", "bon/bonne = good"),
    ("before", "show : roman vin café idée exemple réponse restaurant", "mauvais = bad"),
    ("before", "pet farm", "gros/grosse = fat"),
    ("before", "show : lettre roman histoire poème rapport robe jupe rivière phrase mot",
     "long/longue = long"),
    ("after", "clothing vehicle furniture pair luggage : stylo crayon cahier ballon parapluie vélo "
     "bateau serviette couverture vase tasse assiette",
     "rouge = red; bleu = blue; vert = green; jaune = yellow; noir = black; blanc/blanche = white; "
     "gris/grise = grey; violet/violette = purple; marron/marron/marron = brown; rose = pink; "
     "orange/orange/orange = orange"),
    ("after", "fruit vegetable : œuf poisson pain beurre lait fromage",
     "frais/fraîche/frais = fresh"),
    ("after", "fruit : tomate melon poivron", "mûr = ripe"),
    ("after", "fruit savoury sweet : soupe fromage pain confiture chocolat poulet vin cidre",
     "délicieux/délicieuse = delicious"),
    ("after", ": café thé lait soupe pizza saucisse crêpe quiche omelette",
     "chaud = hot; froid = cold"),
    ("after", ": soupe pizza saucisse salade viande poulet", "épicé = spicy"),
    ("after", "luggage : marteau échelle table armoire piano manteau porte dictionnaire",
     "lourd = heavy; léger/légère = light"),
    ("after", "container : bouteille verre tasse portefeuille théâtre restaurant bus",
     "vide = empty; plein = full"),
    ("after", "opening shop : musée bibliothèque piscine zoo", "ouvert = open; fermé = closed"),
    ("after", "breakable : radio ordinateur horloge étagère guitare", "cassé = broken"),
    ("after", "room clothing vehicle dishes pair home washable : fenêtre plage rivière piscine",
     "propre = clean; sale = dirty"),
    ("after", "washable pair : manteau chapeau imperméable", "mouillé = wet; sec/sèche = dry"),
    ("after", "clothing vehicle home transport pair instrument : bague collier bijou tableau "
     "montre ordinateur téléphone restaurant hôtel", "cher/chère = expensive"),
    ("after", "vehicle clothing pair : vélo téléphone ordinateur montre appartement guitare",
     "neuf/neuve = brand-new"),
    ("after", "home building furniture : pont", "moderne = modern"),
    ("after", "seat pair home : chambre salon voiture train hôtel", "confortable = comfortable"),
    ("after", ": table miroir tapis boîte assiette jardin place", "rond = round; carré = square"),
    ("after", "vehicle transport : vélo cheval chien", "rapide = fast"),
    ("after", "transport : camion tracteur tortue", "lent = slow"),
    ("after", ": lion tigre loup ours serpent crocodile rivière montagne jeu pont",
     "dangereux/dangereuse = dangerous"),
    ("after", "room home : hôtel village parc plage bibliothèque place restaurant île",
     "calme = quiet; bruyant = noisy"),
    ("after", "room : maison appartement forêt", "sombre = dark"),
    ("after", ": couloir pont rivière vallée porte place", "étroit = narrow; large = wide"),
    ("after", ": lac rivière vallée assiette piscine tiroir", "profond = deep"),
    ("after", "sight : acteur actrice chanteur chanteuse écrivain peintre roman poème tableau "
     "chanson film restaurant musicien musicienne", "célèbre = famous"),
    ("after", "text show matter : musée", "intéressant = interesting"),
    ("after", "text show : leçon exercice", "ennuyeux/ennuyeuse = boring"),
    ("after", "show : livre roman histoire conte message acteur chanson",
     "drôle = funny"),
    ("after", "music : film livre roman histoire poème lettre conte", "triste = sad"),
    ("after", "matter : livre texte article", "difficile = difficult; facile = easy"),
    ("after", ": lettre message question règle réponse rapport contrat article idée mot match",
     "important = important"),
    ("after", ": livre dictionnaire outil marteau échelle parapluie téléphone exemple réponse "
     "idée règle ordinateur lampe", "utile = useful"),
    ("after", "breakable : violon vase plante", "fragile = fragile"),
    ("after", ": robe veste costume manteau chapeau jupe chemise femme homme restaurant hôtel",
     "élégant = elegant"),
    ("after", "person kin parent",
     "gentil/gentille = kind; intelligent = intelligent; timide = shy; "
     "bavard = talkative; patient = patient; poli = polite; honnête = honest; riche = rich; "
     "courageux/courageuse = brave; curieux/curieuse = curious; prudent = careful; "
     "sérieux/sérieuse = serious; généreux/généreuse = generous; discret/discrète = discreet; "
     "paresseux/paresseuse = lazy; optimiste = optimistic"),
    ("after", "vehicle show music : roman livre journal acteur actrice chanteur chanteuse écrivain "
     "avocat avocate médecin étudiant étudiante touriste vin fromage restaurant",
     "français/française/français = French; anglais/anglaise/anglais = English; "
     "italien/italienne = Italian; espagnol = Spanish; allemand = German; "
     "japonais/japonaise/japonais = Japanese; américain = American; grec/grecque = Greek; "
     "belge = Belgian; suisse = Swiss; canadien/canadienne = Canadian; "
     "portugais/portugaise/portugais = Portuguese"),
    ("verb", _PEOPLE, "grand = tall; petit = short; fatigué = tired; content = pleased; "
     "heureux/heureuse/heureux = happy; malade = ill; inquiet/inquiète = worried; "
     "jaloux/jalouse = jealous; fier/fière = proud; prêt = ready; seul = alone; "
     "surpris/surprise = surprised; déçu = disappointed; occupé = busy; fâché = angry; "
     "absent = absent; en retard/en retard/en retard = late; nerveux/nerveuse = nervous; "
     "sportif/sportive = athletic; jeune = young; vieux/vieille/vieux = old; triste = sad; "
     "drôle = funny; célèbre = famous"),
)  # fmt: skip


class Adjective(NamedTuple):
    """An adjective of both languages."""

    lemma: str
    masculine: str
    feminine: str
    masculine_plural: str
    feminine_plural: str
    before_vowel: str
    """The masculine singular before a vowel (un bel hôtel)."""
    english: str
    place: str
    """`before`, `after` or `verb`."""

    def form(self, gender: str, plural: bool) -> str:
        """Return the form that agrees."""
        if gender == "m":
            return self.masculine_plural if plural else self.masculine
        return self.feminine_plural if plural else self.feminine


def _entry(text: str, place: str) -> Adjective:
    french, _, english = (part.strip() for part in text.partition("="))
    masculine, feminine, plural, vowel = (*french.split("/"), "", "", "")[:4]
    feminine = feminine or _feminine(masculine)
    plural = plural or (masculine if masculine[-1] in "sx" else masculine + "s")
    # Colours named after a thing, and phrases, do not vary at all.
    invariable = masculine == feminine == plural
    feminine_plural = feminine if invariable else feminine + "s"
    return Adjective(
        masculine, masculine, feminine, plural, feminine_plural, vowel or masculine, english, place
    )


def _feminine(masculine: str) -> str:
    return masculine if masculine.endswith("e") else masculine + "e"


def _read() -> dict[str, dict[str, tuple[Adjective, ...]]]:
    said_of: dict[str, dict[str, tuple[Adjective, ...]]] = {
        lemma: {"before": (), "after": (), "verb": ()} for lemma in BY_LEMMA
    }
    for place, domain, entries in _TABLE:
        classes, _, lemmas = domain.partition(":")
        wanted, named = frozenset(classes.split()), frozenset(lemmas.split())
        found = tuple(_entry(part, place) for part in entries.split(";"))
        for lemma in BY_LEMMA:
            if not wanted.isdisjoint(CLASSES[lemma]) or lemma in named:
                known = said_of[lemma][place]
                said_of[lemma][place] = known + tuple(one for one in found if one not in known)
    return said_of


_SAID_OF = _read()


def adjectives_of(noun: Noun, place: str) -> tuple[Adjective, ...]:
    """Return the adjectives that can be said of a noun at a place."""
    return _SAID_OF[noun.lemma][place]


def _by_english(place: str, domain: str) -> tuple[Adjective, ...]:
    found: dict[str, Adjective] = {}
    for at, classes, entries in _TABLE:
        if at == place and classes == domain:
            found |= {one.english: one for one in (_entry(e, at) for e in entries.split(";"))}
    return tuple(found.values())


CHARACTER: tuple[Adjective, ...] = _by_english("after", "person kin parent")
"""Lasting traits of people."""

STATE: tuple[Adjective, ...] = _by_english("verb", _PEOPLE)
"""What people are after a verb only."""
