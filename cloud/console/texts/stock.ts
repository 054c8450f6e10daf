import { bilingual } from './texts.ts'

/** Texts of the page about stock. */
export const stockTexts = bilingual({
  en: {
    title: 'Stock',
    lead: 'Count the pieces on the shelf and enter the number. Orders and checkouts never sell more.',
    search: 'Find a product',
    searchHint: 'Name, brand or barcode',
    nothing: 'This store has no products yet',
    nothingText: 'Products appear here after somebody has added or imported them.',
    nothingFound: 'No product found',
    nothingFoundText: 'Try the first letters of the name, or scan the barcode.',
    notCounted: 'Not counted',
    levels: (pieces: string, reserved: string, available: string) =>
      `${pieces} in the store, ${reserved} reserved, ${available} available`,
    pieces: 'Counted pieces',
    save: 'Save',
    saved: 'The stock is saved',
  },
  de: {
    title: 'Bestand',
    lead: 'Zählen Sie die Stücke im Regal und tragen Sie die Zahl ein. Verkauft wird nie mehr als das.',
    search: 'Artikel suchen',
    searchHint: 'Name, Marke oder Strichcode',
    nothing: 'Diese Filiale hat noch keine Artikel',
    nothingText: 'Artikel erscheinen hier, sobald jemand sie anlegt oder importiert.',
    nothingFound: 'Kein Artikel gefunden',
    nothingFoundText: 'Versuchen Sie den Anfang des Namens, oder scannen Sie den Strichcode.',
    notCounted: 'Nicht gezählt',
    levels: (pieces: string, reserved: string, available: string) =>
      `${pieces} in der Filiale, ${reserved} reserviert, ${available} verfügbar`,
    pieces: 'Gezählte Stücke',
    save: 'Speichern',
    saved: 'Der Bestand ist gespeichert',
  },
})
