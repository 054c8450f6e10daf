import { bilingual } from './texts.ts'

/** Texts of the page about stock. */
export const stockTexts = bilingual({
  en: {
    title: 'Stock',
    lead: 'Enter how many pieces you count in the store, reserved ones included. Orders and checkouts never sell more than that; without a number they sell without limit.',
    search: 'Find a product',
    searchHint: 'Name, brand or barcode',
    nothing: 'This store has no products yet',
    nothingText: 'Products appear here after somebody has added or imported them.',
    nothingFound: 'No product found',
    nothingFoundText: 'Try the first letters of the name, or scan the barcode.',
    notCounted: 'Not counted: sold without limit',
    levels: (pieces: string, reserved: string, available: string) =>
      `${pieces} in the store, ${reserved} reserved, ${available} available`,
    pieces: 'Counted pieces',
    piecesRule: 'Enter all pieces that you count: a whole number, 0 or more.',
    save: 'Save',
    saved: 'The stock is saved',
    find: 'Find',
  },
  de: {
    title: 'Bestand',
    lead: 'Tragen Sie ein, wie viele Stücke Sie in der Filiale zählen, auch reservierte. Verkauft wird nie mehr als das; ohne Zahl wird ohne Grenze verkauft.',
    search: 'Artikel suchen',
    searchHint: 'Name, Marke oder Strichcode',
    nothing: 'Diese Filiale hat noch keine Artikel',
    nothingText: 'Artikel erscheinen hier, sobald jemand sie anlegt oder importiert.',
    nothingFound: 'Kein Artikel gefunden',
    nothingFoundText: 'Versuchen Sie den Anfang des Namens, oder scannen Sie den Strichcode.',
    notCounted: 'Nicht gezählt: Verkauf ohne Grenze',
    levels: (pieces: string, reserved: string, available: string) =>
      `${pieces} in der Filiale, ${reserved} reserviert, ${available} verfügbar`,
    pieces: 'Gezählte Stücke',
    piecesRule: 'Tragen Sie alle gezählten Stücke ein: eine ganze Zahl ab 0.',
    save: 'Speichern',
    saved: 'Der Bestand ist gespeichert',
    find: 'Suchen',
  },
})
