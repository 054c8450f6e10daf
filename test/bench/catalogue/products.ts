/**
 * Reproducible products for the catalogue figures, without duplicates. Names and brands repeat as in a real shop: 97
 * things, 89 kinds, 199 brands.
 */
export interface BenchProduct {
  ean: string
  name: string
  /** EUR. */
  price: number
  vat: 7 | 19
  brand: string
  category: string
  unit: string
  description: string
}

const STEMS = [
  'hafer',
  'dinkel',
  'milch',
  'apfel',
  'birn',
  'nuss',
  'wald',
  'rind',
  'kräuter',
  'zitron',
  'oliv',
  'mandel',
  'honig',
  'beeren',
]
const THINGS = ['drink', 'brot', 'creme', 'saft', 'öl', 'kekse', 'tee']
const BEGINNINGS = [
  'Lind',
  'Nord',
  'Klar',
  'Tann',
  'Woll',
  'Licht',
  'Stein',
  'Feld',
  'Moor',
  'Hag',
  'Berg',
  'Quell',
  'Stern',
  'Tal',
  'Au',
]
const ENDINGS = [
  'werk',
  'hain',
  'bach',
  'ried',
  'mut',
  'haus',
  'furt',
  'mühle',
  'hof',
  'garten',
  'wiese',
  'quelle',
  'krone',
  'tor',
]
const CATEGORIES = ['getraenke', 'lebensmittel', 'drogerie', 'kosmetik', 'spielwaren'] as const

/** Returns the product with this number, from 0. The first ten million numbers give different products. */
export function benchProduct(number: number): BenchProduct {
  const thing = wordOf(STEMS, THINGS, number % 97)
  const kind = wordOf(BEGINNINGS, THINGS, (number * 31) % 89).toLowerCase()
  const brand = wordOf(BEGINNINGS, ENDINGS, (number * 7) % 199)
  return {
    ean: eanOf(number),
    name: `${capital(thing)} ${kind} ${((number % 50) + 1) * 20} g`,
    price: (((number * 37) % 4_900) + 99) / 100,
    vat: number % 3 === 0 ? 19 : 7,
    brand,
    category: CATEGORIES[number % CATEGORIES.length] as string,
    unit: 'Packung',
    description: `${capital(thing)} von ${brand}, aus kontrolliertem Anbau, Artikel ${number}.`,
  }
}

/** Builds word number `number`: a beginning followed by an ending from the two lists. */
function wordOf(beginnings: readonly string[], endings: readonly string[], number: number): string {
  return `${beginnings[number % beginnings.length]}${endings[Math.floor(number / beginnings.length) % endings.length]}`
}

function capital(word: string): string {
  return word.charAt(0).toUpperCase() + word.slice(1)
}

/** An EAN-13 with a valid check digit. No product of the sandbox has such an EAN. */
function eanOf(number: number): string {
  const digits = `49999${String(number).padStart(7, '0')}`
  const sum = [...digits].reduce((total, digit, i) => total + Number(digit) * (i % 2 === 0 ? 1 : 3), 0)
  return `${digits}${(10 - (sum % 10)) % 10}`
}
