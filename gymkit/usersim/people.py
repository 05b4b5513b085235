"""What synthetic personas are drawn from: names, places and ways of living, by locale. Nobody in here is real."""

from __future__ import annotations

from typing import Final, NamedTuple


class Place(NamedTuple):
    """Somewhere to live."""

    city: str
    """City or town."""
    district: str
    """County, borough or the like."""
    state: str
    """State, region or the like."""
    postcode: str
    """A postcode of that place."""


class Land(NamedTuple):
    """A locale's people."""

    country: str
    """The country, as its rows call it."""
    women: str
    """Given names of women, separated by blanks."""
    men: str
    """Given names of men."""
    families: str
    """Family names."""
    places: tuple[Place, ...]
    """Where they live."""
    streets: str
    """Names of streets, separated by commas."""
    languages: tuple[str, ...] = ()
    """Mother tongues, where rows tell them (India)."""
    religions: tuple[str, ...] = ()
    """Religions, where rows tell them (India)."""


_INDIA: Final = Land(
    "India",
    "Priya Ananya Kavita Meera Sunita Lakshmi Farah Divya",
    "Arjun Rohan Vikram Suresh Imran Karthik Manish Rahul",
    "Sharma Iyer Patel Reddy Khan Nair Banerjee Singh Joshi Das",
    (
        Place("Pune", "Pune", "Maharashtra", "411004"),
        Place("Kochi", "Ernakulam", "Kerala", "682016"),
        Place("Jaipur", "Jaipur", "Rajasthan", "302001"),
        Place("Chennai", "Chennai", "Tamil Nadu", "600028"),
        Place("Lucknow", "Lucknow", "Uttar Pradesh", "226001"),
    ),
    "MG Road,Station Road,Temple Street,Lake View Road",
    ("Hindi", "Marathi", "Tamil", "Malayalam", "Bengali"),
    ("Hindu", "Muslim", "Christian", "Sikh"),
)

LANDS: Final[dict[str, Land]] = {
    "en_US": Land(
        "USA",
        "Maya Grace Olivia Rosa Denise Hannah Aisha Carol",
        "Marcus Daniel Luis Walter Kevin Omar Tyler Frank",
        "Johnson Ramirez Walsh Nguyen Brooks Cohen Peterson Hayes Ortiz Bennett",
        (
            Place("Boulder", "Boulder County", "CO", "80302"),
            Place("Dayton", "Montgomery County", "OH", "45402"),
            Place("Tucson", "Pima County", "AZ", "85701"),
            Place("Portland", "Cumberland County", "ME", "04101"),
            Place("Savannah", "Chatham County", "GA", "31401"),
        ),
        "Maple Street,Oak Avenue,Second Street,Hillcrest Drive",
    ),
    "en_GB": Land(
        "United Kingdom",
        "Charlotte Fiona Amelia Zara Margaret Bethan Isla Joan",
        "Oliver Callum Graham Hamza Rhys Edward Simon Alfie",
        "Taylor Hughes MacDonald Ahmed Wright Evans Cooper Kaur Fletcher Shaw",
        (
            Place("Leeds", "Leeds", "Yorkshire and the Humber", "LS1 4AP"),
            Place("Bristol", "Bristol", "South West", "BS1 5TR"),
            Place("Stirling", "Stirling", "Scotland", "FK8 1HL"),
            Place("Swansea", "Swansea", "Wales", "SA1 3SN"),
        ),
        "Church Lane,Station Road,Victoria Road,Mill Street",
    ),
    "en_IN": _INDIA,
    "hi_Deva_IN": _INDIA,
    "hi_Latn_IN": _INDIA,
    "en_SG": Land(
        "Singapore",
        "Hui Min,Siti,Priscilla,Wei Ling,Nurul,Anjali".replace(" ", "-").replace(",", " "),
        "Jun-Hao Faizal Kumar Boon-Keng Adrian Desmond",
        "Tan Lim Rahman Wong Pillai Goh Ng Abdullah",
        (
            Place("Singapore", "Bukit Panjang", "West Region", "670123"),
            Place("Singapore", "Tampines", "East Region", "520201"),
            Place("Singapore", "Toa Payoh", "Central Region", "310045"),
        ),
        "Lorong 4,Tampines Street 21,Petir Road,Bedok North Avenue 3",
    ),
    "de_DE": Land(
        "Deutschland",
        "Anna Sabine Leonie Petra Aylin Katrin Monika Jule",
        "Jonas Stefan Mehmet Karl Tobias Uwe Felix Bernd",
        "Schmidt Wagner Yilmaz Becker Hoffmann Krüger Lange Vogel Brandt Seidel",
        (
            Place("Freiburg", "Freiburg im Breisgau", "Baden-Württemberg", "79098"),
            Place("Minden", "Minden-Lübbecke", "Nordrhein-Westfalen", "32423"),
            Place("Leipzig", "Leipzig", "Sachsen", "04109"),
            Place("Flensburg", "Flensburg", "Schleswig-Holstein", "24937"),
        ),
        "Hauptstraße,Gartenweg,Lindenallee,Bahnhofstraße",
    ),
    "fr_FR": Land(
        "France",
        "Camille Nathalie Inès Sylvie Léa Fatima Manon Brigitte",
        "Hugo Laurent Karim Philippe Antoine Gérard Théo Yves",
        "Martin Dubois Benali Lefèvre Moreau Girard Roux Fontaine Chevalier Perrin",
        (
            Place("Rennes", "Ille-et-Vilaine", "Bretagne", "35000"),
            Place("Lyon", "Rhône", "Auvergne-Rhône-Alpes", "69003"),
            Place("Lille", "Nord", "Hauts-de-France", "59000"),
            Place("Nîmes", "Gard", "Occitanie", "30000"),
        ),
        "rue des Lilas,avenue de la Gare,rue du Moulin,place du Marché",
    ),
    "pt_BR": Land(
        "Brasil",
        "Juliana Marta Beatriz Rosângela Camila Luana Teresa Aline",
        "Rafael João Thiago Antônio Bruno Paulo Gustavo Wesley",
        "Silva Santos Oliveira Souza Pereira Costa Almeida Ribeiro Nascimento Rocha",
        (
            Place("Recife", "Recife", "Pernambuco", "50030-230"),
            Place("Curitiba", "Curitiba", "Paraná", "80010-000"),
            Place("Belém", "Belém", "Pará", "66010-000"),
            Place("Campinas", "Campinas", "São Paulo", "13010-000"),
        ),
        "Rua das Flores,Avenida Brasil,Rua Sete de Setembro,Travessa do Porto",
    ),
    "ja_JP": Land(
        "日本",
        "美咲 陽子 さくら 恵子 結衣 由美 彩花 和子",
        "翔太 健一 大輔 正雄 蓮 浩二 拓也 修",
        "佐藤 鈴木 高橋 田中 渡辺 山本 中村 小林 加藤 吉田",
        (
            Place("札幌市", "中央区", "北海道", "060-0001"),
            Place("金沢市", "金沢市", "石川県", "920-0853"),
            Place("福岡市", "博多区", "福岡県", "812-0011"),
            Place("松山市", "松山市", "愛媛県", "790-0001"),
        ),
        "本町,栄町,緑ヶ丘,駅前通り",
    ),
    "ko_KR": Land(
        "대한민국",
        "지은 미경 서연 영숙 하은 은주 수빈 정희",
        "민준 성호 현우 영수 지훈 동욱 재석 철수",
        "김 이 박 최 정 강 조 윤 장 임",
        (
            Place("부산광역시", "해운대구", "부산", "48094"),
            Place("대전광역시", "유성구", "대전", "34126"),
            Place("춘천시", "춘천시", "강원특별자치도", "24266"),
            Place("광주광역시", "북구", "광주", "61186"),
        ),
        "중앙로,시청로,벚꽃길,역전로",
    ),
}

OCCUPATIONS: Final = (
    (
        "registered_nurse",
        "bachelors",
        "nursing",
        "looks after patients on a surgical ward and works every other weekend",
        (23, 64),
    ),
    (
        "electrician",
        "associates",
        "",
        "wires kitchens and workshops and keeps the books in the evening",
        (20, 65),
    ),
    ("primary_school_teacher", "masters", "education", "teaches nine-year-olds and runs the school garden", (25, 64)),
    ("warehouse_associate", "high_school", "", "picks orders on the early shift and trains new colleagues", (19, 62)),
    ("software_developer", "bachelors", "computer science", "maintains a ferry company's booking system", (23, 62)),
    (
        "retired_bus_driver",
        "high_school",
        "",
        "drove a city bus for thirty years and now volunteers at the library",
        (63, 78),
    ),
    ("pharmacy_technician", "associates", "", "fills prescriptions and explains them patiently", (21, 64)),
    ("graduate_student", "bachelors", "biology", "counts insects for a thesis and tutors on the side", (22, 34)),
    (
        "restaurant_owner",
        "some_college",
        "",
        "runs a small place with eight tables and does the accounts at night",
        (28, 70),
    ),
    ("accountant", "bachelors", "business", "closes the month for three family firms", (24, 66)),
)
"""Occupation, education, field of a degree, what the work is like, and between which ages it is done."""

PASTIMES: Final = (
    ("long walks", "gardening", "crime novels"),
    ("choir singing", "baking bread", "old films"),
    ("weekend cycling", "chess", "podcasts on history"),
    ("swimming", "sewing", "board games with friends"),
    ("fishing", "repairing radios", "local football"),
    ("watercolours", "birdwatching", "pub quizzes"),
)
"""What they like."""

SKILLS: Final = (
    ("explaining things", "keeping calm", "first aid"),
    ("careful planning", "negotiating", "working with hands"),
    ("spreadsheets", "listening", "writing clear notes"),
    ("driving", "cooking for many", "fixing what breaks"),
)
"""What they are good at."""

GOALS: Final = (
    "Wants to work four days a week within two years without earning much less.",
    "Hopes to pass a further qualification and to take over more responsibility.",
    "Would like to save enough for a small place of their own.",
    "Wants to stay independent and to keep learning something new each year.",
)
"""What they want."""
