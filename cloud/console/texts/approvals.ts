import { bilingual } from './texts.ts'

/** Texts of the page about baskets that wait for a person. */
export const approvalsTexts = bilingual({
  en: {
    title: 'Approvals',
    lead: 'These customers can pay only after you have looked: at their age, or at their basket.',
    nothing: 'No basket waits for a check',
    nothingText:
      'A basket appears here by itself when a customer buys age-restricted goods or a spot check selects it.',
    age: {
      title: 'Age check',
      todo: 'The basket contains age-restricted goods. Look at an identity card, passport or driving licence.',
      approve: 'Old enough: let them pay',
    },
    spotCheck: {
      title: 'Spot check',
      todo: 'Chance selected this basket. Compare the goods of the customer with this list.',
      approve: 'All correct: let them pay',
    },
    waits: (ago: string) => `Asked ${ago}`,
    about: (pieces: string, end: string) => `Pieces: ${pieces} · Purchase …${end}`,
    each: (price: string) => `${price} each`,
    restricted: 'Age check',
    total: 'Total',
    refuse: 'Refuse',
    refuseQuestion: 'Refuse this basket?',
    refuseText: 'The purchase is cancelled, and the customer cannot pay it. Keep the goods here.',
    refuseConfirm: 'Refuse and cancel',
    approved: 'Approved: the customer can pay now',
    refused: 'Refused: the purchase is cancelled',
  },
  de: {
    title: 'Prüfungen',
    lead: 'Diese Kundinnen und Kunden können erst zahlen, wenn Sie den Warenkorb geprüft haben.',
    nothing: 'Kein Warenkorb wartet auf eine Prüfung',
    nothingText:
      'Ein Warenkorb erscheint hier von selbst, wenn er Ware mit Altersgrenze enthält oder eine Stichprobe ihn auswählt.',
    age: {
      title: 'Altersprüfung',
      todo: 'Im Warenkorb ist Ware mit Altersgrenze. Lassen Sie sich einen Ausweis zeigen.',
      approve: 'Alt genug: zahlen lassen',
    },
    spotCheck: {
      title: 'Stichprobe',
      todo: 'Der Zufall hat diesen Warenkorb ausgewählt. Vergleichen Sie die Ware mit dieser Liste.',
      approve: 'Alles richtig: zahlen lassen',
    },
    waits: (ago: string) => `Angefragt ${ago}`,
    about: (pieces: string, end: string) => `Teile insgesamt: ${pieces} · Einkauf …${end}`,
    each: (price: string) => `je ${price}`,
    restricted: 'Altersgrenze',
    total: 'Summe',
    refuse: 'Ablehnen',
    refuseQuestion: 'Diesen Warenkorb ablehnen?',
    refuseText: 'Der Einkauf wird abgebrochen und kann nicht mehr bezahlt werden. Behalten Sie die Ware hier.',
    refuseConfirm: 'Ablehnen und abbrechen',
    approved: 'Freigegeben: Jetzt kann gezahlt werden',
    refused: 'Abgelehnt: Der Einkauf ist abgebrochen',
  },
})
