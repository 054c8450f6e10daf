import { bilingual } from './texts.ts'

/** Texts of the page that puts released hard tags on other goods. */
export const tagsTexts = bilingual({
  en: {
    title: 'Hard tags',
    lead: 'Put hard tags of sold goods on other goods. From then on, gates alarm for them again.',
    ean: 'Barcode of the new goods',
    tags: 'Tags',
    tagsHint:
      'One tag per line: its printed number, EPC, or UID with colons. Scan them one after the other, at most 500.',
    save: 'Put on these goods',
    result: (count: number) => (count === 1 ? '1 tag is on the new goods' : `${count} tags are on the new goods`),
    refused: 'These tags stay as they are:',
    reasons: {
      release_not_confirmed: 'Not released, or the release is not confirmed. Release it at a device first.',
      'not-found': 'This store does not know the tag. Check the number.',
      item_mismatch: 'The tag is encoded for another product. Encode it again first.',
      product_unknown: 'This store does not sell a product with this barcode.',
      unit_differs: 'The tag contains another lot, expiry or serial than the code. Encode it again first.',
    } as Readonly<Record<string, string>>,
    otherReason: 'The tag was refused. Check its number.',
    more: 'More tags',
  },
  de: {
    title: 'Hartetiketten',
    lead: 'Setzen Sie Hartetiketten verkaufter Ware auf andere Ware. Ab dann lösen sie am Ausgang wieder Alarm aus.',
    ean: 'Strichcode der neuen Ware',
    tags: 'Etiketten',
    tagsHint:
      'Ein Etikett pro Zeile: aufgedruckte Nummer, EPC, oder UID mit Doppelpunkten. Nacheinander scannen, höchstens 500.',
    save: 'Auf diese Ware setzen',
    result: (count: number) =>
      count === 1 ? '1 Etikett ist auf der neuen Ware' : `${count} Etiketten sind auf der neuen Ware`,
    refused: 'Diese Etiketten bleiben, wie sie sind:',
    reasons: {
      release_not_confirmed: 'Nicht gelöst, oder die Freigabe ist nicht bestätigt. Lösen Sie es zuerst an einem Gerät.',
      'not-found': 'Diese Filiale kennt das Etikett nicht. Prüfen Sie die Nummer.',
      item_mismatch: 'Das Etikett ist für einen anderen Artikel kodiert. Kodieren Sie es zuerst neu.',
      product_unknown: 'Diese Filiale verkauft keinen Artikel mit diesem Strichcode.',
      unit_differs:
        'Das Etikett enthält eine andere Charge, Seriennummer oder ein anderes Verfallsdatum als der Code. Kodieren Sie es zuerst neu.',
    },
    otherReason: 'Das Etikett wurde abgelehnt. Prüfen Sie die Nummer.',
    more: 'Weitere Etiketten',
  },
})
