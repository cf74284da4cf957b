"""The verbs: English, the objects each one takes, and how its tenses are used.

Marks: `s` a state (simple present in English), `p` over in a moment (no present without a habit),
`n` no past or future, `g` of things in general (aimer les pommes, like apples). `~` before a
particle of English means that a pronoun goes in between (take it off).
"""

from __future__ import annotations

from typing import NamedTuple

from heedful.data.phrasebook.english import EnglishVerb, english_verb
from heedful.data.phrasebook.nouns import BY_LEMMA, NOUNS, Noun

_EATEN = "fruit vegetable savoury sweet edible_mass"
_OWNED = "thing clothing furniture text"
_PEOPLE = "person kin"
_TRANSITIVE = f"""
manger = eat : {_EATEN}
boire = drink : drink
préparer = prepare : savoury sweet @soupe @café @thé
couper = cut : fruit vegetable @pain @fromage @gâteau @tarte @pizza
acheter = buy : {_EATEN} drink {_OWNED} home vehicle pair plant
vendre = sell : fruit vegetable {_OWNED} home vehicle farm
commander = order : savoury sweet drink
apporter = bring : drink small sweet savoury dishes
goûter = taste : savoury sweet @fromage @soupe @vin @confiture @miel
servir = serve : savoury sweet drink @soupe @viande @poisson @poulet
partager = share : sweet @pain @fromage @chocolat @pizza @sandwich @omelette
aimer = like : {_EATEN} drink wild pet | sg
adorer = love : {_EATEN} drink wild pet | sg
détester = hate : {_EATEN} drink wild | sg
lire = read : text
écrire = write : written
regarder = watch : show
écouter = listen to : music
étudier = study : text matter
apprendre = learn : @leçon @règle @mot @phrase @poème @chanson @mélodie @texte @jeu
comprendre = understand : matter @lettre @poème @article @message @film @histoire | s
expliquer = explain : matter @histoire @poème
répéter = repeat : @question @mot @phrase @réponse @règle @histoire @exercice @mélodie
corriger = correct : @exercice @texte @phrase @lettre @réponse @article @rapport
traduire = translate : text @phrase @texte @mot @chanson
oublier = forget : small clothing luggage @mot @règle @leçon | p
perdre = lose : small clothing @sac @valise @match | p
trouver = find : small clothing pet @sac @appartement @hôtel @restaurant @réponse | p
chercher = look for : small clothing pet shop @sac @hôtel @gare @réponse @exemple
cacher = hide : small @bijou @lettre @sac @gâteau @boîte
recevoir = receive : @lettre @cadeau @message @courriel @paquet @carte postale @livre | p
ouvrir = open : opening @lettre @cadeau @paquet @livre @parapluie
fermer = close : opening @livre @parapluie @garage @magasin
casser = break : breakable | p
réparer = repair : repairable
nettoyer = clean : room dishes @table @voiture @tapis @four @fenêtre @réfrigérateur @miroir
ranger = tidy : room @armoire @tiroir @valise @étagère
laver = wash : washable dishes fruit owned_vehicle
repasser = iron : @chemise @robe @jupe @tablier @uniforme
porter = wear : clothing pair @bague @collier @montre @bracelet
mettre = put ~on : clothing pair @bague @collier @montre
enlever = take ~off : clothing pair @bague @montre @collier
essayer = try ~on : clothing pair @bague @collier
plier = fold : washable @serviette @couverture @lettre
conduire = drive : vehicle
garer = park : @voiture @moto @camion @taxi @bus @camionnette @scooter
prendre = take : transport
rater = miss : transport | p
attendre = wait for : transport {_PEOPLE}
voir = see : wild farm sight nature {_PEOPLE} | s
connaître = know : {_PEOPLE} @hôtel @restaurant @village @chanson @musée @île @poème | sn
visiter = visit : sight @école @usine @ferme @université @prison
aider = help : {_PEOPLE}
inviter = invite : {_PEOPLE}
appeler = call : {_PEOPLE}
rencontrer = meet : {_PEOPLE} | p
remercier = thank : {_PEOPLE}
saluer = greet : {_PEOPLE}
suivre = follow : {_PEOPLE} @chien @chat @renard @cheval
accompagner = accompany : {_PEOPLE}
critiquer = criticise : {_PEOPLE} @film @livre @roman @article @idée
admirer = admire : sight nature @tableau @acteur @actrice @écrivain @peintre @bijou @violon
dessiner = draw : wild farm plant @maison @château @bateau @montagne @vélo @chat @chien
peindre = paint : nature home plant @bateau @porte @chaise @table @pont
photographier = photograph : wild sight nature farm plant
construire = build : home @pont @château @hôtel @école @bateau @hôpital @étagère @stade
louer = rent : home @voiture @vélo @bateau @camionnette @scooter @bureau
choisir = choose : clothing small text show sweet savoury pair
finir = finish : text @exercice @gâteau @soupe @sandwich @leçon @jeu
commencer = start : text @exercice @leçon @jeu
remplir = fill : @sac @valise @boîte @panier @verre @bouteille @tasse @seau @réfrigérateur
vider = empty : @sac @valise @boîte @panier @verre @bouteille @tiroir @seau @armoire
tenir = hold : small @sac @verre @tasse @échelle @marteau
jeter = throw ~away : @boîte @bouteille @journal @lettre @chaussure @jouet @chaise @magazine @fleur
nourrir = feed : pet farm
caresser = stroke : pet @mouton @âne @vache
brosser = brush : @chien @chat @cheval @poney @lapin @âne @manteau @tapis
soigner = treat : pet farm @enfant @pompier @touriste @client @homme @femme
planter = plant : @arbre @fleur @rose @tulipe @haie @tomate @carotte @chou @buisson @oignon
arroser = water : plant @tomate @jardin @carotte
cueillir = pick : fruit @fleur @rose @tulipe @champignon @tomate
allumer = turn ~on : switch
éteindre = turn ~off : switch
vérifier = check : @réponse @billet @passeport @lettre @texte @exercice @facture @rapport @contrat
signer = sign : paper
poster = post : @lettre @carte postale @paquet @chèque
accepter = accept : @cadeau @idée @contrat @règle @chèque @réponse
refuser = refuse : @cadeau @contrat @chèque @gâteau @bonbon @règle
emprunter = borrow : @livre @vélo @parapluie @stylo @voiture @échelle @marteau @dictionnaire @roman
utiliser = use : @dictionnaire @ordinateur @téléphone @marteau @échelle @outil @couteau @four @stylo
inventer = invent : @histoire @jeu @conte @mélodie @mot @règle
chanter = sing : @chanson @mélodie @opéra
"""
_GIVING = """
donner = give; montrer = show; offrir = give; prêter = lend; envoyer = send; apporter = bring;
vendre = sell; rendre = give ~back
"""
_SPEAKING = """
parler = talk to; téléphoner = phone; répondre = answer; sourire = smile at;
obéir = obey | s; ressembler = look like | s; écrire = write to
"""
_INTRANSITIVE = """
dormir = sleep; travailler = work; marcher = walk; courir = run; nager = swim; chanter = sing;
danser = dance; rire = laugh; pleurer = cry; voyager = travel; étudier = study; jouer = play;
cuisiner = cook; bavarder = chat; attendre = wait; manger = eat; lire = read; dessiner = draw;
peindre = paint
"""
_MOVING = "aller = go; arriver = arrive; rester = stay; retourner = go back; revenir = come back; "
_REFLEXIVE = """
se lever = get up; se coucher = go to bed; se réveiller = wake up; se laver = wash;
se habiller = get dressed; se promener = go for a walk; se reposer = rest; se dépêcher = hurry;
se amuser = have fun; se tromper = make a mistake | p; se ennuyer = get bored;
se arrêter = stop | p; se perdre = get lost | p; se baigner = go for a swim;
se inquiéter = worry; se entraîner = train; se marier = get married | p
"""
_ACTIVITIES = """
faire | les courses = do the shopping; faire | la cuisine = do the cooking;
faire | la vaisselle = do the dishes; faire | le ménage = do the housework;
faire | du vélo = go cycling; faire | du ski = go skiing; faire | de la musique = make music;
jouer | au football = play football; jouer | au tennis = play tennis;
jouer | aux cartes = play cards; jouer | aux échecs = play chess;
jouer | du piano = play the piano; jouer | de la guitare = play the guitar;
jouer | du violon = play the violin; jouer | de la harpe = play the harp;
jouer | de la flûte = play the flute; prendre | le petit déjeuner = have breakfast;
prendre | une douche = have a shower; prendre | un bain = have a bath;
écouter | la radio = listen to the radio; regarder | la télévision = watch television;
apprendre | le français = learn French; apprendre | l'anglais = learn English;
apprendre | à nager = learn to swim; apprendre | à conduire = learn to drive;
faire | une promenade = go for a walk; mettre | la table = lay the table;
faire | une sieste = have a nap; faire | du jardinage = do some gardening
"""


class Verb(NamedTuple):
    """A verb of both languages."""

    infinitive: str
    """Without its reflexive pronoun."""
    english: EnglishVerb
    marks: str
    """Letters as in the module's docstring."""
    objects: tuple[Noun, ...]
    """What it is done to; empty where it takes no object."""
    reflexive: bool
    after: str
    """What always follows it in French (les courses)."""

    @property
    def takes_etre(self) -> bool:
        """Whether its passé composé is made with être."""
        return self.reflexive or self.infinitive in ETRE


ETRE = frozenset(
    [
        "aller",
        "arriver",
        "rester",
        "retourner",
        "revenir",
        "venir",
        "partir",
        "sortir",
        "rentrer",
        "tomber",
        "monter",
        "descendre",
        "entrer",
        "devenir",
    ]
)
"""Verbs of movement and change that make their past with être."""


def _objects(text: str) -> tuple[Noun, ...]:
    found: dict[str, Noun] = {}
    classes, *lemmas = text.split("@")
    for name in classes.split():
        found |= {noun.lemma: noun for noun in NOUNS[name.replace("_", " ")]}
    for lemma in (one.strip() for one in lemmas):
        found[lemma] = BY_LEMMA[lemma]
    return tuple(found.values())


def _transitive(line: str) -> Verb:
    head, _, rest = line.partition(":")
    french, _, english = head.partition("=")
    objects, _, marks = rest.partition("|")
    verb = english_verb(english.strip())
    return Verb(french.strip(), verb, marks.strip(), _objects(objects), False, "")


def _plain(text: str) -> tuple[Verb, ...]:
    found = []
    for entry in text.replace("\n", " ").split(";"):
        if entry.strip():
            french, _, english = entry.partition("=")
            english, _, marks = english.partition("|")
            infinitive, _, after = (part.strip() for part in french.partition("|"))
            reflexive = infinitive.startswith("se ")
            found.append(
                Verb(
                    infinitive.removeprefix("se "),
                    english_verb(english.strip()),
                    marks.strip(),
                    (),
                    reflexive,
                    after,
                )
            )
    return tuple(found)


TRANSITIVE: tuple[Verb, ...] = tuple(map(_transitive, _TRANSITIVE.strip().splitlines()))
GIVING: tuple[Verb, ...] = _plain(_GIVING)
SPEAKING: tuple[Verb, ...] = _plain(_SPEAKING)
INTRANSITIVE: tuple[Verb, ...] = _plain(_INTRANSITIVE)
MOVING: tuple[Verb, ...] = _plain(_MOVING)
REFLEXIVE: tuple[Verb, ...] = _plain(_REFLEXIVE)
ACTIVITIES: tuple[Verb, ...] = _plain(_ACTIVITIES)
VERBS: dict[str, Verb] = {verb.infinitive: verb for verb in TRANSITIVE}
"""The transitive verbs by infinitive."""
