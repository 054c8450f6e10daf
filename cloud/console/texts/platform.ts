import { bilingual } from './texts.ts'

/** Texts of the page on which the people who run the cloud review registrations. */
export const registrationsTexts = bilingual({
  en: {
    title: 'Registrations',
    lead: 'Who wants a store or an account. You decide, and the merchant reads your decision.',
    status: 'State',
    states: { pending: 'To review', approved: 'Approved', rejected: 'Rejected' },
    nothing: { pending: 'Nothing waits for review', approved: 'None is approved', rejected: 'None is rejected' },
    kinds: { store: 'Store of an account', account: 'New account' },
    submitted: (time: string) => `Submitted ${time}`,
    decided: (time: string) => `Decided ${time}`,
    names: {
      company: 'Company',
      address: 'Address',
      phone: 'Phone',
      email: 'E-mail',
      role: 'Sent by',
      package: 'Requested package',
      account: 'Account',
    },
    noAddress: 'None: the approval makes a demo store',
    noWish: 'None',
    openAccount: 'Open the account',
    approve: 'Approve',
    approveQuestion: (name: string) => `Approve ${name}?`,
    approveText: {
      store: 'The live store is made at once. The merchant sees it in the console, on the page Stores.',
      storeDemo: 'A demo store is made at once. The merchant sees it in the console, on the page Stores.',
      account:
        'The account and its first live store are made at once. The merchant fetches the keys with claimRegistration.',
      accountDemo:
        'The account and a demo store are made at once. The merchant fetches the keys with claimRegistration.',
    },
    package: 'Package',
    packageHint: 'Devices, agents and security tags of a live store need GROW. You can change it later.',
    approved: 'Approved. The store is there.',
    reject: 'Reject',
    rejectQuestion: (name: string) => `Reject ${name}?`,
    rejectText: {
      store: 'This cannot be undone. The merchant reads the reason word for word in the console, on the page Stores.',
      account:
        'This cannot be undone. The merchant reads the reason word for word, in the answer of claimRegistration.',
    },
    reason: 'Reason for the merchant',
    reasonHint: 'What is missing, and what the merchant can do. At most 500 characters.',
    rejected: 'Rejected. The merchant reads the reason.',
    merchantReads: 'The merchant reads',
  },
  de: {
    title: 'Anträge',
    lead: 'Wer eine Filiale oder ein Konto möchte. Sie entscheiden, und der Händler liest Ihre Entscheidung.',
    status: 'Zustand',
    states: { pending: 'Zu prüfen', approved: 'Angenommen', rejected: 'Abgelehnt' },
    nothing: {
      pending: 'Nichts wartet auf Prüfung',
      approved: 'Keiner ist angenommen',
      rejected: 'Keiner ist abgelehnt',
    },
    kinds: { store: 'Filiale eines Kontos', account: 'Neues Konto' },
    submitted: (time: string) => `Eingereicht ${time}`,
    decided: (time: string) => `Entschieden ${time}`,
    names: {
      company: 'Firma',
      address: 'Anschrift',
      phone: 'Telefon',
      email: 'E-Mail',
      role: 'Gesendet von',
      package: 'Gewünschtes Paket',
      account: 'Konto',
    },
    noAddress: 'Keine: Es entsteht eine Demo-Filiale',
    noWish: 'Keins',
    openAccount: 'Konto öffnen',
    approve: 'Annehmen',
    approveQuestion: (name: string) => `${name} annehmen?`,
    approveText: {
      store: 'Die echte Filiale entsteht sofort. Der Händler sieht sie in der Konsole auf der Seite „Filialen“.',
      storeDemo: 'Eine Demo-Filiale entsteht sofort. Der Händler sieht sie in der Konsole auf der Seite „Filialen“.',
      account:
        'Das Konto und seine erste echte Filiale entstehen sofort. Der Händler holt die Schlüssel mit claimRegistration.',
      accountDemo:
        'Das Konto und eine Demo-Filiale entstehen sofort. Der Händler holt die Schlüssel mit claimRegistration.',
    },
    package: 'Paket',
    packageHint:
      'Geräte, Agenten und Sicherungsetiketten einer echten Filiale brauchen GROW. Sie können es später ändern.',
    approved: 'Angenommen. Die Filiale ist da.',
    reject: 'Ablehnen',
    rejectQuestion: (name: string) => `${name} ablehnen?`,
    rejectText: {
      store:
        'Das lässt sich nicht rückgängig machen. Der Händler liest den Grund wörtlich in der Konsole, auf der Seite „Filialen“.',
      account:
        'Das lässt sich nicht rückgängig machen. Der Händler liest den Grund wörtlich in der Antwort von claimRegistration.',
    },
    reason: 'Grund für den Händler',
    reasonHint: 'Was fehlt, und was der Händler tun kann. Höchstens 500 Zeichen.',
    rejected: 'Abgelehnt. Der Händler liest den Grund.',
    merchantReads: 'Der Händler liest',
  },
})
