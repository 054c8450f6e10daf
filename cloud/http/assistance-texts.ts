/** What the page of a zone says, in the languages that it speaks. */
export const ZONE_TEXTS = {
  de: {
    title: 'Hilfe rufen',
    intro: 'Sie möchten Hilfe? Schreiben Sie uns, oder rufen Sie einfach jemanden.',
    label: 'Ihre Frage (muss nicht sein)',
    call: 'Hilfe rufen',
    chat: 'Ihre Anfrage',
    open: 'Wir wissen Bescheid. Gleich kommt jemand, oder es steht hier eine Antwort.',
    answered: 'Wir haben geantwortet.',
    closed: 'Diese Anfrage ist beendet.',
    refresh: 'Neue Antworten zeigen',
    reply: 'Ihre Nachricht',
    send: 'Senden',
    again: 'Neue Anfrage',
    shopper: 'Sie',
    staff: 'Mitarbeitende',
    keep: 'Nur wer diese Seite hat, liest mit. Nach 30 Tagen wird alles gelöscht.',
    full: 'Mehr passt nicht in diese Anfrage. Bitte sprechen Sie uns an.',
    unknown: 'Hier gibt es nichts. Bitte sprechen Sie uns an.',
    tooFast: 'Das ging zu schnell. Bitte warten Sie einen Moment.',
    tooLong: 'Das war zu lang: höchstens 500 Zeichen.',
    busy: 'Es warten schon sehr viele. Bitte sprechen Sie uns an.',
    back: 'Zurück',
    other: 'English',
  },
  en: {
    title: 'Call for help',
    intro: 'Would you like help? Write to us, or just call somebody.',
    label: 'Your question (optional)',
    call: 'Call for help',
    chat: 'Your request',
    open: 'We know. Somebody will be with you soon, or an answer will stand here.',
    answered: 'We have answered.',
    closed: 'This request has ended.',
    refresh: 'Show new answers',
    reply: 'Your message',
    send: 'Send',
    again: 'New request',
    shopper: 'You',
    staff: 'Staff',
    keep: 'Only who has this page can read it. Everything is deleted after 30 days.',
    full: 'This request holds no more. Please speak to us.',
    unknown: 'There is nothing here. Please speak to us.',
    tooFast: 'That was too fast. Please wait a moment.',
    tooLong: 'That was too long: 500 characters at most.',
    busy: 'Very many are waiting already. Please speak to us.',
    back: 'Back',
    other: 'Deutsch',
  },
} as const
export type Language = keyof typeof ZONE_TEXTS
export type ZoneText = keyof (typeof ZONE_TEXTS)['de']

/** German or English: as asked for, else whichever the browser names first, else German. */
export function languageOf(asked: string | undefined, accepted: string | undefined): Language {
  if (asked === 'de' || asked === 'en') return asked
  return /\b(de|en)\b/i.exec(accepted?.slice(0, 200) ?? '')?.[1]?.toLowerCase() === 'en' ? 'en' : 'de'
}
