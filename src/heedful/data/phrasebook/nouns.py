"""The nouns: gender, plurals, English, and what kind of thing each one is.

One entry reads `gender french/plural = english/plural`; a plural is written only where the rules
of its language would get it wrong, and `*` marks an aspirated h (le haricot, not l'haricot). The
classes are what verbs and adjectives select by, so that people eat food and drive vehicles. A
noun that belongs to several classes is written in full once and recalled by name afterwards.
"""

from __future__ import annotations

from typing import NamedTuple

from heedful.data.phrasebook.english import plural_of

_TABLE: dict[str, str] = {
    "parent": """m père = father; f mère = mother; m mari = husband;
        m grand-père/grands-pères = grandfather; f grand-mère/grands-mères = grandmother""",
    "kin": """m frère = brother; f sœur = sister; m oncle = uncle; f tante = aunt;
        m cousin = cousin; f cousine = cousin; m neveu/neveux = nephew; f nièce = niece;
        m ami = friend; f amie = friend; m fils/fils = son; f fille = daughter""",
    "person": """m voisin = neighbour; f voisine = neighbour; m médecin = doctor;
        m infirmier = nurse; f infirmière = nurse; m professeur = teacher; f professeure = teacher;
        m étudiant = student; f étudiante = student; m boulanger = baker; f boulangère = baker;
        m serveur = waiter; f serveuse = waitress; m cuisinier = cook; f cuisinière = cook;
        m facteur = postman/postmen; m avocat = lawyer; f avocate = lawyer; m acteur = actor;
        f actrice = actress; m chanteur = singer; f chanteuse = singer; m touriste = tourist;
        m homme = man/men; f femme = woman/women; m garçon = boy; m enfant = child/children;
        m directeur = manager; f directrice = manager; m journaliste = journalist;
        m peintre = painter; m policier = police officer; f policière = police officer;
        m pompier = firefighter; m ingénieur = engineer; f ingénieure = engineer;
        m musicien = musician; f musicienne = musician; m écrivain = writer; m fermier = farmer;
        f fermière = farmer; m vendeur = shop assistant; f vendeuse = shop assistant;
        m coiffeur = hairdresser; f coiffeuse = hairdresser; m dentiste = dentist;
        m client = customer; f cliente = customer; m patron = boss; f patronne = boss;
        m collègue = colleague; f collègue = colleague; m invité = guest; f invitée = guest;
        m boucher = butcher; m voyageur = traveller; f voyageuse = traveller;
        m jardinier = gardener; m pilote = pilot; m juge = judge; m *héros/héros = hero""",
    "pet": """m chien = dog; m chat = cat; m lapin = rabbit; m *hamster = hamster;
        m cheval/chevaux = horse; m oiseau/oiseaux = bird; m perroquet = parrot;
        f tortue = tortoise; f souris/souris = mouse/mice; m poney = pony""",
    "farm": """f vache = cow; m mouton = sheep/sheep; m canard = duck; m cochon = pig;
        f poule = hen; m âne = donkey; f chèvre = goat; m agneau/agneaux = lamb;
        f oie = goose/geese; m taureau/taureaux = bull""",
    "wild": """m *hérisson = hedgehog; m renard = fox; m loup = wolf/wolves; m ours/ours = bear;
        m lion = lion; m éléphant = elephant; m singe = monkey; m *héron = heron;
        m *hibou/hiboux = owl; m écureuil = squirrel; f grenouille = frog;
        m papillon = butterfly; f abeille = bee; f girafe = giraffe; m zèbre = zebra;
        m tigre = tiger; m aigle = eagle; m serpent = snake; f araignée = spider;
        m crocodile = crocodile; m dauphin = dolphin; m cygne = swan""",
    "fruit": """f pomme = apple; f poire = pear; f orange = orange; f banane = banana;
        f cerise = cherry; f fraise = strawberry; m abricot = apricot; m citron = lemon;
        m ananas/ananas = pineapple; f pêche = peach; f prune = plum; m melon = melon;
        f framboise = raspberry; f figue = fig""",
    "vegetable": """f tomate = tomato; f carotte = carrot; m oignon = onion; m *haricot = bean;
        m champignon = mushroom; m chou/choux = cabbage; m poivron = pepper;
        m concombre = cucumber; f pomme de terre/pommes de terre = potato; f aubergine = aubergine;
        f courgette = courgette; m artichaut = artichoke; m radis/radis = radish""",
    "savoury": """m sandwich/sandwichs = sandwich; f omelette = omelette; f pizza = pizza;
        f saucisse = sausage; m steak = steak; f salade = salad; m *homard = lobster;
        f huître = oyster; f quiche = quiche; m œuf = egg""",
    "sweet": """m gâteau/gâteaux = cake; f tarte = tart; m biscuit = biscuit;
        m croissant = croissant; f crêpe = pancake; m bonbon = sweet; f glace = ice cream""",
    "staple": """m pain = bread; m fromage = cheese; m beurre = butter; m riz = rice;
        f viande = meat; f soupe = soup; f confiture = jam; m miel = honey;
        m chocolat = chocolate; m sucre = sugar; m sel = salt; f huile = oil; m poulet = chicken;
        m poisson = fish; m jambon = ham; f farine = flour""",
    "drink": """f eau = water; m café = coffee; m thé = tea; m lait = milk; m vin = wine;
        f bière = beer; m jus d'orange = orange juice; f limonade = lemonade; m cidre = cider;
        m jus de pomme = apple juice""",
    "edible mass": "pain; fromage; riz; viande; soupe; confiture; miel; chocolat; poulet; poisson; "
    "jambon",
    "vehicle": """f voiture = car; m camion = lorry; f moto = motorbike; m taxi = taxi;
        m tracteur = tractor; m bus/bus = bus; f camionnette = van; f ambulance = ambulance""",
    "transport": "m train = train; bus; m avion = plane; taxi; m bateau/bateaux = boat; "
    "m tramway = tram; m ferry = ferry",
    "owned vehicle": "voiture; moto; camion; camionnette; bateau; m vélo = bike; "
    "m scooter = scooter",
    "room": """f chambre = bedroom; f cuisine = kitchen; m salon = living room;
        f salle de bains/salles de bains = bathroom; m bureau/bureaux = office; f cave = cellar;
        m grenier = attic; m garage = garage; m balcon = balcony; m couloir = corridor;
        f terrasse = terrace; m jardin = garden; f entrée = hall""",
    "shop": """f boulangerie = bakery; f pharmacie = pharmacy; f banque = bank;
        m supermarché = supermarket; m magasin = shop; f librairie = bookshop; m marché = market;
        m restaurant = restaurant; f poste = post office; f bijouterie = jewellery shop""",
    "building": """m hôtel = hotel; f école = school; m hôpital/hôpitaux = hospital;
        f gare = station; m aéroport = airport; m musée = museum; m cinéma = cinema;
        m théâtre = theatre; f bibliothèque = library; f piscine = swimming pool; f usine = factory;
        f mairie = town hall; f université = university; m stade = stadium; f ferme = farm;
        m château/châteaux = castle; f église = church; f prison = prison; m port = harbour;
        m *hangar = shed""",
    "outdoors": "m parc = park; f plage = beach; m zoo = zoo; m village = village; "
    "f place = square; m pont = bridge; m camping = campsite",
    "sight": "musée; château; zoo; église; village; théâtre; m palais/palais = palace; "
    "f cathédrale = cathedral; m monument = monument; f île = island; f ville = town; port",
    "home": "f maison = house; m appartement = flat; f villa = villa; m studio = studio; "
    "m chalet = chalet",
    "nature": """f montagne = mountain; f rivière = river; m lac = lake; f forêt = forest; île;
        m champ = field; f colline = hill; f vallée = valley; m désert = desert; m arbre = tree;
        f cascade = waterfall; m volcan = volcano/volcanoes""",
    "plant": "f fleur = flower; f rose = rose; f tulipe = tulip; arbre; f *haie = hedge; "
    "f plante = plant; m buisson = bush; f orchidée = orchid",
    "seat": "f chaise = chair; m lit = bed; m fauteuil = armchair; m canapé = sofa; "
    "m banc = bench; m *hamac = hammock",
    "furniture": """f table = table; chaise; lit; f armoire = wardrobe; fauteuil; f lampe = lamp;
        m miroir = mirror; m tapis/tapis = rug; f étagère = shelf/shelves; canapé;
        m rideau/rideaux = curtain; f horloge = clock; m réfrigérateur = fridge; m four = oven;
        m piano = piano; m radiateur = radiator""",
    "surface": "table; chaise; lit; étagère; fauteuil; canapé; tapis; banc; piano",
    "container": "m sac = bag; f valise = suitcase; f boîte = box; m panier = basket; "
    "m tiroir = drawer; armoire; réfrigérateur; m coffre = chest; m seau/seaux = bucket",
    "luggage": "sac; valise; boîte; panier; coffre; m paquet = parcel",
    "opening": "f porte = door; f fenêtre = window; boîte; valise; tiroir; sac; armoire; "
    "f bouteille = bottle; réfrigérateur; f grille = gate; coffre",
    "switch": "lampe; m ordinateur = computer; f radio = radio; four; f télévision = television; "
    "radiateur",
    "thing": """m stylo = pen; m crayon = pencil; m cahier = notebook; f clé = key; sac; valise;
        m téléphone = phone; ordinateur; f montre = watch; m parapluie = umbrella; f photo = photo;
        m cadeau/cadeaux = present; m bijou/bijoux = jewel; m jouet = toy; m ballon = ball;
        f guitare = guitar; m violon = violin; f *harpe = harp; m billet = ticket;
        m passeport = passport; f bague = ring; m outil = tool; m marteau/marteaux = hammer;
        f *hache = axe; f échelle = ladder; f serviette = towel; f couverture = blanket;
        m oreiller = pillow; m tableau/tableaux = painting; m vase = vase; boîte; panier;
        f bougie = candle; m drapeau/drapeaux = flag; m dictionnaire = dictionary;
        m appareil photo/appareils photo = camera; f poupée = doll; m collier = necklace;
        m portefeuille = wallet; f lampe de poche/lampes de poche = torch;
        f gomme = eraser; m peigne = comb; m bracelet = bracelet;
        m aimant = magnet; m caillou/cailloux = pebble; f trompette = trumpet; f flûte = flute""",
    "small": """stylo; crayon; cahier; clé; téléphone; montre; photo; cadeau; bijou; jouet; ballon;
        billet; passeport; bague; marteau; serviette; bougie; dictionnaire; poupée; collier;
        portefeuille; gomme; peigne; parapluie; appareil photo""",
    "instrument": "guitare; violon; harpe; piano; trompette; flûte",
    "dishes": "m verre = glass; f assiette = plate; f tasse = cup; "
    "m couteau/couteaux = knife/knives; f fourchette = fork; f cuillère = spoon; "
    "m bol = bowl; f casserole = saucepan; f poêle = frying pan",
    "breakable": "verre; assiette; tasse; vase; bouteille; fenêtre; chaise; montre; téléphone; "
    "jouet; miroir; poupée; bol; lampe",
    "repairable": "voiture; moto; vélo; camion; tracteur; ordinateur; téléphone; montre; radio; "
    "télévision; chaise; horloge; porte; bateau; réfrigérateur; appareil photo; lampe; jouet",
    "clothing": """f chemise = shirt; f robe = dress; f jupe = skirt; m manteau/manteaux = coat;
        m chapeau/chapeaux = hat; f veste = jacket; f écharpe = scarf/scarves; m pull = jumper;
        f cravate = tie; f ceinture = belt; f casquette = cap; m costume = suit;
        m imperméable = raincoat; m tablier = apron; m uniforme = uniform""",
    "washable": "chemise; robe; jupe; veste; pull; serviette; couverture; tablier",
    "pair": "f chaussure = shoe; f chaussette = sock; m gant = glove; f botte = boot; "
    "f sandale = sandal; f pantoufle = slipper",
    "text": """m livre = book; m journal/journaux = newspaper; f lettre = letter; m roman = novel;
        m poème = poem; f histoire = story; f carte postale/cartes postales = postcard;
        m magazine = magazine; m article = article; m message = message; m courriel = email;
        m conte = tale; m rapport = report""",
    "printed": "livre; journal; roman; magazine; carte postale; dictionnaire",
    "written": "lettre; roman; poème; histoire; carte postale; article; message; courriel; conte; "
    "rapport; f chanson = song; f liste = list",
    "show": "m film = film; m match/matchs = match; m documentaire = documentary; "
    "f pièce de théâtre/pièces de théâtre = play; f émission = programme; "
    "m spectacle = performance; m concert = concert",
    "stage": "spectacle; pièce de théâtre; concert; m opéra = opera",
    "screen": "film; documentaire",
    "music": "chanson; concert; m disque = record; f symphonie = symphony; f mélodie = tune; "
    "m opéra = opera",
    "matter": """f question = question; f leçon = lesson; m exercice = exercise;
        m problème = problem; f règle = rule; f réponse = answer; m mot = word; f phrase = sentence;
        m texte = text; f idée = idea; m exemple = example; m jeu/jeux = game""",
    "paper": "lettre; m contrat = contract; rapport; m chèque = cheque; f facture = invoice",
}


class Noun(NamedTuple):
    """A noun of both languages."""

    lemma: str
    """The French singular, with the gender where two nouns share it."""
    gender: str
    """`m` or `f`."""
    singular: str
    plural: str
    english: str
    english_plural: str
    aspirated: bool
    """Whether an initial h forbids elision."""


MASS = frozenset(("staple", "drink"))
"""Classes whose nouns are measured, not counted."""


def _entry(text: str) -> Noun:
    french, _, english = (part.strip() for part in text.partition("="))
    gender, _, forms = french.partition(" ")
    aspirated = forms.startswith("*")
    singular, _, plural = forms.lstrip("*").partition("/")
    plural = plural or (singular if singular[-1] in "sxz" else singular + "s")
    one, _, many = english.partition("/")
    return Noun(singular, gender, singular, plural, one, many or plural_of(one), aspirated)


def _read(table: dict[str, str]) -> dict[str, tuple[Noun, ...]]:
    known: dict[str, Noun] = {}
    classes: dict[str, tuple[Noun, ...]] = {}
    written = [(name, part.strip()) for name, text in table.items() for part in text.split(";")]
    # Entries in full come first: a class may recall a noun that a later class defines.
    for _, part in written:
        if "=" in part:
            noun = _entry(part)
            key = noun.singular
            if key in known and known[key].gender != noun.gender:
                known[key] = known[key]._replace(lemma=f"{key} m")
                noun = noun._replace(lemma=f"{key} f")
                key = f"{key} f"
            known[key] = noun
    for name, part in written:
        found = _entry(part) if "=" in part else known[part]
        other = known.get(f"{found.singular} f")
        noun = other if other and found.gender == "f" else known[found.singular]
        if noun not in classes.setdefault(name, ()):
            classes[name] = (*classes[name], noun)
    return classes


NOUNS: dict[str, tuple[Noun, ...]] = _read(_TABLE)
"""The nouns of each class."""

BY_LEMMA: dict[str, Noun] = {noun.lemma: noun for nouns in NOUNS.values() for noun in nouns}
"""Every noun once."""

CLASSES: dict[str, frozenset[str]] = {
    lemma: frozenset(name for name, nouns in NOUNS.items() if noun in nouns)
    for lemma, noun in BY_LEMMA.items()
}
"""The classes of each noun, by its lemma."""


def is_mass(noun: Noun) -> bool:
    """Say whether a noun is measured (du pain) and not counted (un pain)."""
    return not MASS.isdisjoint(CLASSES[noun.lemma])
