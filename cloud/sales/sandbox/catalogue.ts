/**
 * Products of the two sandbox stores. Brands, titles and company numbers are invented. VAT follows the specification:
 * 7 % for food, non-alcoholic drinks and books, 19 % for the rest. The products are sorted by category, then by name.
 * The EAN-13s of a brand share a company prefix of 7 digits (8 for an EAN-8), which an SGTIN needs (`splitGtin14`).
 */
export interface SandboxProduct {
  /** 8 or 13 digits, the last one a check digit; never a leading zero. */
  readonly ean: string
  readonly name: string
  /** Gross, integer cents of EUR. */
  readonly priceCent: number
  /** The struck-through price, above `priceCent`. */
  readonly oldPriceCent?: number
  readonly vat: 7 | 19
  readonly category: SandboxCategory
  readonly brand: string
  /** Sales unit. */
  readonly unit?: string
  readonly weight?: string
  readonly description?: string
  readonly isOrganic?: true
  readonly isVegan?: true
  readonly allergens?: readonly string[]
  /** True for alcohol: staff check the age. */
  readonly requiresHumanVerification?: true
  /** False for goods without a security tag, such as a yoghurt. */
  readonly tagged?: false
}

/** Departments of German retailers, as people read them on pages and receipts. */
export const SANDBOX_CATEGORIES = [
  'Bekleidung',
  'Bücher',
  'Drogerie',
  'Elektronik',
  'Getränke',
  'Kosmetik',
  'Lebensmittel',
  'Schuhe',
  'Spielwaren',
  'Spirituosen',
] as const
type SandboxCategory = (typeof SANDBOX_CATEGORIES)[number]

// One product a line.
// oxfmt-ignore
export const SANDBOX_PRODUCTS: readonly SandboxProduct[] = [
  { ean: '4017265103243', name: 'Damen-Bluse Leinen, Größe 40', priceCent: 4995, vat: 19, category: 'Bekleidung', brand: 'Lindwerk',
    unit: 'Stück', description: 'Luftige Bluse aus reinem Leinen mit Perlmuttknöpfen.' },
  { ean: '4017265103267', name: 'Damen-Jeans Straight Fit, 30/32, mittelblau', priceCent: 7995, oldPriceCent: 8995, vat: 19,
    category: 'Bekleidung', brand: 'Lindwerk', unit: 'Stück',
    description: 'Gerader Schnitt, fünf Taschen, 98 % Baumwolle und 2 % Elasthan.' },
  { ean: '4031846103347', name: 'Damen-Strickjacke Merinowolle, Größe M', priceCent: 11900, vat: 19, category: 'Bekleidung',
    brand: 'Wollmut', unit: 'Stück', description: 'Feinstrick aus Merinowolle, maschinenwaschbar im Wollgang.' },
  { ean: '4003917103419', name: 'Daunenmantel Damen, Größe 38, nachtblau', priceCent: 24995, oldPriceCent: 29995, vat: 19,
    category: 'Bekleidung', brand: 'Nordhain', unit: 'Stück', weight: '980 g',
    description: 'Wasserabweisender Wintermantel mit abnehmbarer Kapuze.' },
  { ean: '4017265103816', name: 'Herren-Hemd Slim Fit, Kragenweite 41, weiß', priceCent: 5995, vat: 19, category: 'Bekleidung',
    brand: 'Lindwerk', unit: 'Stück', description: 'Bügelleichte Popeline aus Baumwolle.' },
  { ean: '4003917103549', name: 'Herren-Regenjacke, Größe L, moosgrün', priceCent: 12995, vat: 19, category: 'Bekleidung',
    brand: 'Nordhain', unit: 'Stück', weight: '420 g', description: 'Wassersäule 10.000 mm, verschweißte Nähte.' },
  { ean: '4044713103555', name: 'Herren-T-Shirt Rundhals, Größe M, schwarz', priceCent: 1799, vat: 19, category: 'Bekleidung',
    brand: 'Fadenfroh', unit: 'Stück', isVegan: true },
  { ean: '4044713103616', name: 'Kinder-Pullover Streifen, Größe 116', priceCent: 2499, oldPriceCent: 2999, vat: 19,
    category: 'Bekleidung', brand: 'Fadenfroh', unit: 'Stück', description: 'Weicher Sweat aus Baumwolle, innen angeraut.' },
  { ean: '4003917103679', name: 'Lederjacke Herren, Größe 50, schwarz', priceCent: 34900, vat: 19, category: 'Bekleidung',
    brand: 'Nordhain', unit: 'Stück', description: 'Lammnappa, gefüttert, zwei Innentaschen.' },
  { ean: '4031846103903', name: 'Schal Kaschmir, anthrazit', priceCent: 8990, vat: 19, category: 'Bekleidung', brand: 'Wollmut',
    unit: 'Stück', weight: '160 g' },
  { ean: '4044713104064', name: 'Sportsocken, 3 Paar, Größe 39–42', priceCent: 899, vat: 19, category: 'Bekleidung', brand: 'Fadenfroh',
    unit: 'Packung', tagged: false },

  { ean: '4315829103280', name: 'Backen mit Sauerteig', priceCent: 2800, vat: 7, category: 'Bücher', brand: 'Seitenpfad', unit: 'Stück',
    description: 'Achtzig Rezepte vom Roggenlaib bis zur Brezel. Gebunden, 224 Seiten.' },
  { ean: '4302746103240', name: 'Das Licht hinter den Deichen', priceCent: 2400, vat: 7, category: 'Bücher', brand: 'Papierlaterne',
    unit: 'Stück', description: 'Roman. Gebunden mit Schutzumschlag, 368 Seiten.' },
  { ean: '4302746103370', name: 'Der kleine Fuchs und der große Regen', priceCent: 1500, vat: 7, category: 'Bücher',
    brand: 'Papierlaterne', unit: 'Stück', description: 'Bilderbuch ab 3 Jahren, 32 Seiten.' },
  { ean: '4315829103426', name: 'Radwege an der Elbe', priceCent: 1690, vat: 7, category: 'Bücher', brand: 'Seitenpfad', unit: 'Stück',
    description: 'Tourenführer mit Karten im Maßstab 1:75.000.' },
  { ean: '4302746103400', name: 'Stille Wasser, kalte Nacht', priceCent: 1300, vat: 7, category: 'Bücher', brand: 'Papierlaterne',
    unit: 'Stück', description: 'Kriminalroman. Taschenbuch, 416 Seiten.', tagged: false },

  { ean: '4071958103521', name: 'Duschgel Zitrone & Minze, 250 ml', priceCent: 195, vat: 19, category: 'Drogerie', brand: 'Klarbach',
    unit: 'Flasche', isVegan: true, tagged: false },
  { ean: '4071958103651', name: 'Flüssigwaschmittel Color, 20 Wäschen', priceCent: 549, oldPriceCent: 649, vat: 19, category: 'Drogerie',
    brand: 'Klarbach', unit: 'Flasche', tagged: false },
  { ean: '42135708', name: 'Lippenpflegestift Kamille', priceCent: 149, vat: 19, category: 'Drogerie', brand: 'Klarbach', unit: 'Stück',
    isVegan: true, tagged: false },
  { ean: '4071958104009', name: 'Rasierklingen, 8 Stück', priceCent: 1895, vat: 19, category: 'Drogerie', brand: 'Klarbach',
    unit: 'Packung', description: 'Fünf Klingen mit Gleitstreifen, passend für alle Klarbach-Halter.' },
  { ean: '4099276103108', name: 'Schallzahnbürste Reise-Set', priceCent: 6999, oldPriceCent: 8999, vat: 19, category: 'Drogerie',
    brand: 'Zahnwacht', unit: 'Set', description: 'Drei Putzstufen, Ladeetui, zwei Ersatzbürsten.' },
  { ean: '4071958104030', name: 'Sonnenmilch LSF 50, 200 ml', priceCent: 899, vat: 19, category: 'Drogerie', brand: 'Klarbach',
    unit: 'Flasche', description: 'Für empfindliche Haut, ohne Parfüm, wasserfest.', isVegan: true },
  { ean: '4083641103244', name: 'Taschentücher, 30 × 10 Stück', priceCent: 265, vat: 19, category: 'Drogerie', brand: 'Moosweich',
    unit: 'Packung', tagged: false },
  { ean: '4083641103831', name: 'Toilettenpapier 3-lagig, 10 Rollen', priceCent: 395, vat: 19, category: 'Drogerie', brand: 'Moosweich',
    unit: 'Packung', tagged: false },
  { ean: '42678144', name: 'Zahnbürste mittel', priceCent: 185, vat: 19, category: 'Drogerie', brand: 'Zahnwacht', unit: 'Stück',
    tagged: false },
  { ean: '4099276103597', name: 'Zahncreme Kräuter, 75 ml', priceCent: 129, vat: 19, category: 'Drogerie', brand: 'Zahnwacht',
    unit: 'Tube', isVegan: true, tagged: false },

  { ean: '43209613', name: 'Batterien AA, 8 Stück', priceCent: 599, vat: 19, category: 'Elektronik', brand: 'Voltarn', unit: 'Packung' },
  { ean: '4268507103488', name: 'Bluetooth-Lautsprecher Boje, wasserdicht', priceCent: 8999, oldPriceCent: 10999, vat: 19,
    category: 'Elektronik', brand: 'Klangwerft', unit: 'Stück', weight: '610 g',
    description: 'IP67, zwölf Stunden Laufzeit, koppelbar zum Stereopaar.' },
  { ean: '4279134103673', name: 'Fitnessuhr Takt 3', priceCent: 17999, vat: 19, category: 'Elektronik', brand: 'Hertzgrund',
    unit: 'Stück', weight: '34 g', description: 'Puls, GPS und sieben Tage Akku. Armband Größe M/L.' },
  { ean: '4268507103891', name: 'Funk-Kopfhörer mit Geräuschunterdrückung', priceCent: 22900, oldPriceCent: 26900, vat: 19,
    category: 'Elektronik', brand: 'Klangwerft', unit: 'Stück', weight: '248 g',
    description: 'Bis zu 40 Stunden Laufzeit, faltbar, mit Tasche.' },
  { ean: '4241983103289', name: 'Ladekabel USB-C, 2 m', priceCent: 1499, vat: 19, category: 'Elektronik', brand: 'Voltarn', unit: 'Stück' },
  { ean: '4241983103494', name: 'Powerbank 20.000 mAh', priceCent: 3999, vat: 19, category: 'Elektronik', brand: 'Voltarn', unit: 'Stück',
    weight: '355 g' },
  { ean: '4241983103661', name: 'Schnellladegerät USB-C, 65 W', priceCent: 3499, vat: 19, category: 'Elektronik', brand: 'Voltarn',
    unit: 'Stück' },
  { ean: '4279134104052', name: 'Speicherkarte microSDXC, 256 GB', priceCent: 2799, oldPriceCent: 3299, vat: 19, category: 'Elektronik',
    brand: 'Hertzgrund', unit: 'Stück', description: 'Bis zu 160 MB/s Lesen, mit Adapter.' },
  { ean: '4279134104434', name: 'Tablet 11 Zoll, 128 GB, graphit', priceCent: 37900, oldPriceCent: 42900, vat: 19, category: 'Elektronik',
    brand: 'Hertzgrund', unit: 'Stück', weight: '498 g', description: 'IPS-Anzeige mit 120 Hz, 8 GB Arbeitsspeicher, WLAN 6.' },

  { ean: '4186051103566', name: 'Apfelsaft naturtrüb, 1 l', priceCent: 199, vat: 7, category: 'Getränke', brand: 'Saftwiese',
    unit: 'Karton', isOrganic: true, isVegan: true, tagged: false },
  { ean: '4137082103568', name: 'Haferdrink ungesüßt, 1 l', priceCent: 165, vat: 7, category: 'Getränke', brand: 'Tannried',
    unit: 'Karton', isOrganic: true, isVegan: true, allergens: ['Gluten'], tagged: false },
  { ean: '4194738103457', name: 'Kräutertee Abendruhe, 20 Beutel', priceCent: 289, vat: 7, category: 'Getränke', brand: 'Teezeile',
    unit: 'Packung', weight: '40 g', isOrganic: true, isVegan: true, tagged: false },
  { ean: '42519379', name: 'Multivitaminsaft, 0,2 l', priceCent: 79, vat: 7, category: 'Getränke', brand: 'Saftwiese', unit: 'Karton',
    isVegan: true, tagged: false },
  { ean: '4203865103213', name: 'Pils, 5-l-Partyfass', priceCent: 1299, oldPriceCent: 1449, vat: 19, category: 'Getränke',
    brand: 'Hopfenspitz', unit: 'Fass', isVegan: true, allergens: ['Gluten'], requiresHumanVerification: true, tagged: false },
  { ean: '4186051103597', name: 'Rhabarbersaft-Getränk, 1 l', priceCent: 249, vat: 7, category: 'Getränke', brand: 'Saftwiese',
    unit: 'Karton', isVegan: true, tagged: false },

  { ean: '4118749103176', name: 'Eau de Parfum Minuit, 50 ml', priceCent: 8950, oldPriceCent: 9900, vat: 19, category: 'Kosmetik',
    brand: 'Oréval', unit: 'Flasche', description: 'Bergamotte, Iris und Zedernholz.' },
  { ean: '4118749103589', name: 'Eau de Parfum Minuit, Geschenkset 100 ml', priceCent: 16900, vat: 19, category: 'Kosmetik',
    brand: 'Oréval', unit: 'Set', description: 'Mit Körperlotion und Reisezerstäuber.' },
  { ean: '4126315103314', name: 'Gesichtsserum Hyaluron, 30 ml', priceCent: 2495, vat: 19, category: 'Kosmetik', brand: 'Veilchenhain',
    unit: 'Flasche', isVegan: true },
  { ean: '4102583103386', name: 'Lidschatten-Palette, 12 Farben', priceCent: 2995, oldPriceCent: 3495, vat: 19, category: 'Kosmetik',
    brand: 'Lunavie', unit: 'Stück', isVegan: true },
  { ean: '42864059', name: 'Lippenstift matt, Beerenrot', priceCent: 1295, vat: 19, category: 'Kosmetik', brand: 'Lunavie', unit: 'Stück',
    isVegan: true },
  { ean: '4126315103345', name: 'Nachtcreme Wildrose, 50 ml', priceCent: 1895, vat: 19, category: 'Kosmetik', brand: 'Veilchenhain',
    unit: 'Dose', description: 'Reichhaltige Pflege für trockene Haut, zertifizierte Naturkosmetik.', isOrganic: true },
  { ean: '43097128', name: 'Nagellack Muschelrosa, 8 ml', priceCent: 795, vat: 19, category: 'Kosmetik', brand: 'Lunavie', unit: 'Stück',
    isVegan: true },
  { ean: '4102583103690', name: 'Wimperntusche Volumen, schwarz', priceCent: 1395, vat: 19, category: 'Kosmetik', brand: 'Lunavie',
    unit: 'Stück' },

  { ean: '4168437103490', name: 'Anfangsmilch PRE, 800 g', priceCent: 1995, vat: 7, category: 'Lebensmittel', brand: 'Milchnest',
    unit: 'Dose', weight: '800 g', description: 'Von Geburt an. Stillen ist das Beste für Ihr Kind; bitte lassen Sie sich beraten.',
    allergens: ['Milch', 'Fisch', 'Soja'] },
  { ean: '4149563103639', name: 'Dinkelmehl Type 630, 1 kg', priceCent: 179, vat: 7, category: 'Lebensmittel', brand: 'Mühlenpfad',
    unit: 'Packung', weight: '1 kg', isOrganic: true, isVegan: true, allergens: ['Gluten'], tagged: false },
  { ean: '4137082104152', name: 'Eier aus Freilandhaltung, 10 Stück', priceCent: 329, vat: 7, category: 'Lebensmittel', brand: 'Tannried',
    unit: 'Packung', allergens: ['Ei'], tagged: false },
  { ean: '4152894103100', name: 'Espresso ganze Bohne, 1 kg', priceCent: 2199, oldPriceCent: 2499, vat: 7, category: 'Lebensmittel',
    brand: 'Sturmlicht', unit: 'Packung', weight: '1 kg', description: 'Kräftige Röstung mit Noten von Kakao und Haselnuss.',
    isVegan: true },
  { ean: '4152894103278', name: 'Filterkaffee gemahlen, 500 g', priceCent: 899, vat: 7, category: 'Lebensmittel', brand: 'Sturmlicht',
    unit: 'Packung', weight: '500 g', isOrganic: true, isVegan: true },
  { ean: '4137082104640', name: 'Heidelbeerjoghurt, 150 g', priceCent: 89, vat: 7, category: 'Lebensmittel', brand: 'Tannried',
    unit: 'Becher', weight: '150 g', isOrganic: true, allergens: ['Milch'], tagged: false },
  { ean: '4137082105135', name: 'Heumilch 3,8 % Fett, 1 l', priceCent: 159, vat: 7, category: 'Lebensmittel', brand: 'Tannried',
    unit: 'Karton', allergens: ['Milch'], tagged: false },
  { ean: '4149563104056', name: 'Knäckebrot Sesam, 250 g', priceCent: 199, vat: 7, category: 'Lebensmittel', brand: 'Mühlenpfad',
    unit: 'Packung', weight: '250 g', isVegan: true, allergens: ['Gluten', 'Sesam'], tagged: false },
  { ean: '4173629103455', name: 'Räucherlachs in Scheiben, 200 g', priceCent: 799, oldPriceCent: 949, vat: 7, category: 'Lebensmittel',
    brand: 'Küstenfang', unit: 'Packung', weight: '200 g', allergens: ['Fisch'] },
  { ean: '4137082105654', name: 'Rinder-Rumpfsteak, 2 Stück, 400 g', priceCent: 1699, vat: 7, category: 'Lebensmittel', brand: 'Tannried',
    unit: 'Packung', weight: '400 g', description: 'Trocken gereift, aus Weidehaltung.' },
  { ean: '4149563104438', name: 'Spaghetti aus Hartweizen, 500 g', priceCent: 149, vat: 7, category: 'Lebensmittel', brand: 'Mühlenpfad',
    unit: 'Packung', weight: '500 g', isVegan: true, allergens: ['Gluten'], tagged: false },
  { ean: '42743583', name: 'Vollkorn-Keksriegel Haselnuss, 40 g', priceCent: 99, vat: 7, category: 'Lebensmittel', brand: 'Mühlenpfad',
    unit: 'Stück', weight: '40 g', allergens: ['Gluten', 'Haselnüsse', 'Milch'], tagged: false },
  { ean: '4149563104889', name: 'Zartbitterschokolade 70 %, 100 g', priceCent: 229, vat: 7, category: 'Lebensmittel', brand: 'Mühlenpfad',
    unit: 'Tafel', weight: '100 g', isOrganic: true, isVegan: true, allergens: ['Soja'], tagged: false },

  { ean: '4066127103457', name: 'Damen-Laufschuh Brise, Größe 39', priceCent: 11995, oldPriceCent: 13995, vat: 19, category: 'Schuhe',
    brand: 'Pfadrunde', unit: 'Paar', description: 'Leichter Neutralschuh, 8 mm Sprengung.' },
  { ean: '4058392103485', name: 'Damen-Stiefelette Veloursleder, Größe 38', priceCent: 12995, vat: 19, category: 'Schuhe',
    brand: 'Stegwald', unit: 'Paar', description: 'Blockabsatz 5 cm, seitlicher Reißverschluss.' },
  { ean: '4058392103966', name: 'Herren-Schnürschuh Derby, Größe 43, braun', priceCent: 15995, vat: 19, category: 'Schuhe',
    brand: 'Stegwald', unit: 'Paar', description: 'Rahmengenäht, Glattleder, neu besohlbar.' },
  { ean: '4066127103907', name: 'Kinder-Turnschuh Klett, Größe 31', priceCent: 3495, oldPriceCent: 3995, vat: 19, category: 'Schuhe',
    brand: 'Pfadrunde', unit: 'Paar' },
  { ean: '4066127104072', name: 'Wanderstiefel Grat, Größe 44', priceCent: 18995, vat: 19, category: 'Schuhe', brand: 'Pfadrunde',
    unit: 'Paar', weight: '1,3 kg', description: 'Wasserdichte Membran, griffige Sohle, bedingt steigeisenfest.' },

  { ean: '4391573103240', name: 'Brettspiel Hafen der Händler', priceCent: 3799, vat: 19, category: 'Spielwaren', brand: 'Würfelgnom',
    unit: 'Stück', description: 'Für 2–4 Personen ab 10 Jahren, etwa 75 Minuten.' },
  { ean: '4348261103495', name: 'Holzeisenbahn, 42 Teile', priceCent: 4999, oldPriceCent: 5999, vat: 19, category: 'Spielwaren',
    brand: 'Bauklang', unit: 'Set', weight: '2,1 kg', description: 'Buchenholz aus nachhaltiger Forstwirtschaft, ab 3 Jahren.' },
  { ean: '4391573103486', name: 'Kartenspiel Wer hat den Wurm?', priceCent: 899, vat: 19, category: 'Spielwaren', brand: 'Würfelgnom',
    unit: 'Stück', tagged: false },
  { ean: '4348261103983', name: 'Kuscheltier Dachs, 30 cm', priceCent: 2295, vat: 19, category: 'Spielwaren', brand: 'Bauklang',
    unit: 'Stück' },
  { ean: '4348261104294', name: 'Murmelbahn-Baukasten, 96 Teile', priceCent: 6495, vat: 19, category: 'Spielwaren', brand: 'Bauklang',
    unit: 'Set', description: 'Erweiterbar, ab 5 Jahren. Achtung: enthält verschluckbare Kleinteile.' },

  { ean: '4229518103669', name: 'Grauburgunder trocken 2024, 0,75 l', priceCent: 899, vat: 19, category: 'Spirituosen',
    brand: 'Kirchrain', unit: 'Flasche', isVegan: true, allergens: ['Sulfite'], requiresHumanVerification: true },
  { ean: '4217394103248', name: 'Kräuterlikör 35 % vol, 0,7 l', priceCent: 1399, oldPriceCent: 1599, vat: 19, category: 'Spirituosen',
    brand: 'Hollerbrand', unit: 'Flasche', isVegan: true, requiresHumanVerification: true },
  { ean: '4236472103383', name: 'London Dry Gin 44 % vol, 0,5 l', priceCent: 3290, vat: 19, category: 'Spirituosen',
    brand: 'Wacholdermoor', unit: 'Flasche', description: 'Mit Wacholder, Zitronenschale und Heideblüte.', isVegan: true,
    requiresHumanVerification: true },
  { ean: '4217394103729', name: 'Obstbrand Williams-Christ 40 % vol, 0,5 l', priceCent: 2890, vat: 19, category: 'Spirituosen',
    brand: 'Hollerbrand', unit: 'Flasche', isVegan: true, requiresHumanVerification: true },
  { ean: '4229518104048', name: 'Riesling-Sekt brut 2022, 0,75 l', priceCent: 1690, vat: 19, category: 'Spirituosen', brand: 'Kirchrain',
    unit: 'Flasche', description: 'Traditionelle Flaschengärung, 24 Monate auf der Hefe.', isVegan: true, allergens: ['Sulfite'],
    requiresHumanVerification: true },
  { ean: '4236472103406', name: 'Single Malt Whisky 12 Jahre 46 % vol, 0,7 l', priceCent: 5990, oldPriceCent: 6490, vat: 19,
    category: 'Spirituosen', brand: 'Wacholdermoor', unit: 'Flasche', allergens: ['Gluten'], requiresHumanVerification: true },
  { ean: '4229518104635', name: 'Spätburgunder trocken 2021, 0,75 l', priceCent: 1490, vat: 19, category: 'Spirituosen',
    brand: 'Kirchrain', unit: 'Flasche', isVegan: true, allergens: ['Sulfite'], requiresHumanVerification: true },
]
