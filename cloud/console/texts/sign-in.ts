import { bilingual } from './texts.ts'

export const signInTexts = bilingual({
  en: {
    title: 'Sign in',
    ended: 'Your session has ended',
    endedText:
      'It ends after some time without use, or when your rights change. Sign in again: what you typed is still there, but for passwords and codes.',
    email: 'E-mail address',
    password: 'Password',
    submit: 'Sign in',
    failed: 'You are not signed in',
    wrong: 'The e-mail address or the password is wrong. Check both and try again.',
    tooMany: 'Too many sign-ins failed. Wait 15 minutes, then try again.',
    otherSite: 'Another site sent this form. Open the console and sign in there.',
    forgotten: 'No access? Ask an owner or administrator of your account for a new invitation.',
    invitationTitle: 'Accept the invitation',
    invitationOpen: 'The invitation is not accepted yet',
    passwordTooShort: 'Use at least 12 characters.',
    invitationLead: (email: string) => `You will sign in as ${email}.`,
    name: 'Your name',
    newPassword: 'New password',
    newPasswordHint: 'At least 12 characters. Several words that nobody guesses work best.',
    accept: 'Accept and sign in',
    invitationGone: 'This link was used or has expired. Ask the person who invited you for a new one.',
    toSignIn: 'To the sign-in page',
    withProvider: (name: string) => `Sign in with ${name}`,
    orPassword: 'or with your password',
    providerFailed: 'The sign-in was cancelled or took too long. Start again.',
    providerDown: (name: string) => `Sign-in with ${name} is not possible now. Use your password, or try later.`,
    notInvited: {
      user_not_invited: (email: string) =>
        `No user has the address ${email}. Ask an owner or administrator for an invitation, or sign in with another account.`,
      email_missing: () => 'The provider does not tell your e-mail address. Ask its administrator.',
      email_not_verified: (email: string) =>
        `The provider has not verified your address ${email}. Ask its administrator.`,
      email_domain_not_listed: (email: string) =>
        `Addresses such as ${email} may not sign in here. Sign in with another account.`,
      linked_to_other_identity: (email: string) =>
        `The provider knows ${email} as another person than before. Ask an owner or administrator to remove the user and to invite you again.`,
    },
    account: 'Account',
    accountHint: 'Its name, only if your address belongs to several accounts.',
    accountTitle: 'Choose an account',
    accountLead: 'Your e-mail address belongs to several accounts. Choose the one that you want to work in.',
    accountUnknown: 'You do not know one of the names? Anybody can invite an address. Do not choose that account.',
    usedBefore: 'You used this account before.',
    severalAccounts: 'You are a user of several accounts. Choose one, and enter your password again.',
    codeTitle: 'Enter the code',
    codeLead: 'Open your authenticator app and enter the six digits for untag.',
    code: 'Code',
    codeLost: 'Phone lost? Enter one of your recovery codes.',
    wrongCode: 'The code is wrong or was used, or the sign-in has expired. Wait for the next code, or sign in again.',
  },
  de: {
    title: 'Anmelden',
    ended: 'Ihre Sitzung ist beendet',
    endedText:
      'Sie endet nach einiger Zeit ohne Benutzung, oder wenn sich Ihre Rechte ändern. Melden Sie sich wieder an: Was Sie getippt haben, steht noch da, außer Passwörtern und Codes.',
    email: 'E-Mail-Adresse',
    password: 'Passwort',
    submit: 'Anmelden',
    failed: 'Sie sind nicht angemeldet',
    wrong: 'E-Mail-Adresse oder Passwort ist falsch. Prüfen Sie beides und versuchen Sie es noch einmal.',
    tooMany: 'Zu viele Anmeldungen sind fehlgeschlagen. Warten Sie 15 Minuten und versuchen Sie es dann noch einmal.',
    otherSite: 'Eine andere Seite hat dieses Formular gesendet. Öffnen Sie die Konsole und melden Sie sich dort an.',
    forgotten: 'Kein Zugang? Bitten Sie Inhaberin, Inhaber oder Verwaltung Ihres Kontos um eine neue Einladung.',
    invitationTitle: 'Einladung annehmen',
    invitationOpen: 'Die Einladung ist noch nicht angenommen',
    passwordTooShort: 'Nehmen Sie mindestens 12 Zeichen.',
    invitationLead: (email: string) => `Sie melden sich künftig als ${email} an.`,
    name: 'Ihr Name',
    newPassword: 'Neues Passwort',
    newPasswordHint: 'Mindestens 12 Zeichen. Am besten mehrere Wörter, die niemand errät.',
    accept: 'Annehmen und anmelden',
    invitationGone:
      'Dieser Link wurde schon benutzt oder ist abgelaufen. Bitten Sie die Person, die Sie eingeladen hat, um einen neuen.',
    toSignIn: 'Zur Anmeldung',
    withProvider: (name: string) => `Anmelden mit ${name}`,
    orPassword: 'oder mit Ihrem Passwort',
    providerFailed: 'Die Anmeldung wurde abgebrochen oder hat zu lange gedauert. Beginnen Sie noch einmal.',
    providerDown: (name: string) =>
      `Die Anmeldung mit ${name} geht gerade nicht. Nehmen Sie Ihr Passwort, oder versuchen Sie es später.`,
    notInvited: {
      user_not_invited: (email: string) =>
        `Niemand hier hat die Adresse ${email}. Bitten Sie Inhaberin, Inhaber oder Verwaltung um eine Einladung, oder melden Sie sich mit einem anderen Konto an.`,
      email_missing: () => 'Der Anbieter nennt Ihre E-Mail-Adresse nicht. Fragen Sie dort nach.',
      email_not_verified: (email: string) =>
        `Der Anbieter hat Ihre Adresse ${email} nicht bestätigt. Fragen Sie dort nach.`,
      email_domain_not_listed: (email: string) =>
        `Mit Adressen wie ${email} kann man sich hier nicht anmelden. Nehmen Sie ein anderes Konto.`,
      linked_to_other_identity: (email: string) =>
        `Der Anbieter kennt ${email} als eine andere Person als bisher. Bitten Sie Inhaberin, Inhaber oder Verwaltung, den Zugang zu entfernen und Sie neu einzuladen.`,
    },
    account: 'Konto',
    accountHint: 'Sein Name, nur wenn Ihre Adresse zu mehreren Konten gehört.',
    accountTitle: 'Konto wählen',
    accountLead: 'Ihre E-Mail-Adresse gehört zu mehreren Konten. Wählen Sie das, in dem Sie arbeiten wollen.',
    accountUnknown:
      'Sie kennen einen der Namen nicht? Jeder kann eine Adresse einladen. Wählen Sie dieses Konto dann nicht.',
    usedBefore: 'Dieses Konto haben Sie schon benutzt.',
    severalAccounts: 'Sie sind Benutzer mehrerer Konten. Wählen Sie eines, und geben Sie Ihr Passwort noch einmal ein.',
    codeTitle: 'Code eingeben',
    codeLead: 'Öffnen Sie Ihre Authenticator-App und geben Sie die sechs Ziffern für untag ein.',
    code: 'Code',
    codeLost: 'Handy verloren? Geben Sie einen Ihrer Wiederherstellungscodes ein.',
    wrongCode:
      'Der Code ist falsch oder schon benutzt, oder die Anmeldung ist abgelaufen. Warten Sie auf den nächsten Code, oder melden Sie sich neu an.',
  },
})
