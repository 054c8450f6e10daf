import { bilingual } from './texts.ts'

/** Texts of the page about stock. */
export const stockTexts = bilingual({
  en: {
    title: 'Stock',
    lead: 'Enter how many pieces you count in the store, reserved ones included. Orders and checkouts never sell more than that; without a number they sell without limit.',
    leadOfViewer:
      'The pieces that staff counted in the store, reserved ones included. Orders and checkouts never sell more than that; without a number they sell without limit.',
    search: 'Find a product',
    searchHint: 'Name, brand or barcode',
    nothing: 'This store has no products yet',
    nothingText: 'Products appear here after you have added or imported them.',
    nothingFound: 'No product found',
    nothingFoundText: 'Try the first letters of the name, or scan the barcode.',
    notCounted: 'Not counted',
    product: 'Product',
    inStore: 'In the store',
    reserved: 'Reserved',
    available: 'Available',
    pieces: 'Counted pieces',
    piecesRule: 'Enter all pieces that you count: a whole number, 0 or more.',
    save: 'Save the counted pieces',
    saved: 'The stock is saved',
    find: 'Find',
  },
  de: {
    title: 'Bestand',
    lead: 'Tragen Sie ein, wie viele Stücke Sie in der Filiale zählen, auch reservierte. Verkauft wird nie mehr als das; ohne Zahl wird ohne Grenze verkauft.',
    leadOfViewer:
      'Was das Personal in der Filiale gezählt hat, auch reservierte Stücke. Verkauft wird nie mehr als das; ohne Zahl wird ohne Grenze verkauft.',
    search: 'Artikel suchen',
    searchHint: 'Name, Marke oder Strichcode',
    nothing: 'Diese Filiale hat noch keine Artikel',
    nothingText: 'Artikel erscheinen hier, sobald jemand sie anlegt oder importiert.',
    nothingFound: 'Kein Artikel gefunden',
    nothingFoundText: 'Versuchen Sie den Anfang des Namens, oder scannen Sie den Strichcode.',
    notCounted: 'Nicht gezählt',
    product: 'Artikel',
    inStore: 'In der Filiale',
    reserved: 'Reserviert',
    available: 'Verfügbar',
    pieces: 'Gezählte Stücke',
    piecesRule: 'Tragen Sie alle gezählten Stücke ein: eine ganze Zahl ab 0.',
    save: 'Gezählte Stücke speichern',
    saved: 'Der Bestand ist gespeichert',
    find: 'Suchen',
  },
})
