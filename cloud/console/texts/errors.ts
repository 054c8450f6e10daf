import { bilingual } from './texts.ts'

/** What happened, and what the reader does next. */
export const errorTexts = bilingual({
  en: {
    forbidden: {
      title: 'Your role cannot open this page',
      text: (role: string, roles: string) =>
        `You are signed in as: ${role}. This page is for: ${roles}. Ask the owner of the account to change your role.`,
    },
    notFound: { title: 'This page does not exist', text: 'Check the address, or choose a page from the navigation.' },
    problem: {
      title: 'This did not work',
      text: 'Load the page again. If this does not help, report the request number.',
    },
    noStore: {
      title: 'There is no store here',
      text: 'You have no store in this mode. Switch between live and test data at the top of the page, or ask the owner of the account for access.',
      ofOwner:
        'This account has no store in this mode. To get one, send the data of the store with a key of this mode: untag api insertStore. Whoever runs this cloud approves a live store, see the guide “Open the first live store”. Until then, switch to the other mode at the top of the page.',
    },
    backToStart: 'Go to the start page',
    alarm_disposed: 'A colleague has recorded a cause in the meantime. Record another one only if that is wrong.',
    package_changed:
      'Someone else has changed the package since you opened this. Compare what changes now, and decide again.',
    line: (number: string, text: string) => `Line ${number} (${text})`,
    changedMeanwhile:
      'Someone else has changed this since you opened it. Your entries are still here: compare them, and save again to replace the other change.',
    wrongSecret:
      'The code or password is wrong, or the code was used. Enter it again; a new code appears every 30 seconds.',
    requestNumber: 'Request number',
    outdatedForm: 'This form was open for too long. Check your entries and send it again.',
    form: 'The entries were not saved.',
    codes: {
      'invalid-argument': 'Check the marked fields.',
      unauthenticated: 'You are no longer signed in. Sign in and try again.',
      'permission-denied': 'Your role, or the package of this store, does not allow this.',
      'not-found': 'This entry no longer exists. Load the page again.',
      'already-exists': 'This already exists, or the same form is still being saved.',
      'failed-precondition': 'The state has changed in the meantime, so this is no longer possible.',
      'payload-too-large': 'The form is too large.',
      'unsupported-media-type': 'The browser sent a form that cannot be read.',
      'resource-exhausted': 'Too many requests. Wait a moment and try again.',
      unavailable: 'This is not available at the moment. Try again in a minute.',
      internal: 'An error occurred and was recorded.',
    },
    atMost: (limit: string) => `At most: ${limit}.`,
    atLeast: (limit: string) => `At least: ${limit}.`,
    fields: {
      missing: 'Fill in this field.',
      other: 'This is not accepted here. Change it and try again.',
      too_small: 'This is too short or too small.',
      too_big: 'This is too long or too large.',
      invalid_type: 'This has the wrong form.',
      invalid_value: 'Choose one of the offered values.',
      invalid_format: 'This has the wrong form.',
      missing_column: 'A column is missing. Compare the first row with the template.',
      unknown_column: 'A column is unknown. Compare the first row with the template.',
      repeated_column: 'A column is there twice.',
      empty_file: 'The file has no products.',
      too_many_rows: 'The file has over 10,000 rows. Split it.',
      encrypted: 'This is an old .xls workbook, or it has a password. Save it as .xlsx without a password.',
      not_a_spreadsheet: 'This is no spreadsheet. Open it in a spreadsheet program, and save it as .xlsx.',
      product_unknown: 'Not all chosen stores sell this product.',
      owner_of_all_stores: 'An owner has all stores. Choose all stores, or another role.',
      credentials_refused: 'The system refuses these settings. Compare keys, names and passwords with the system.',
      system_refused: 'The system answers with an error. Compare the address and the settings with the system.',
      url_refused: 'This address is not allowed. Enter a public address that begins with https://.',
      mapping: 'Write pairs of your names and ours, such as {"sku": "ean"}.',
      customer_differs: 'The two customer ids differ. Compare them, and type the same id twice.',
      postal_code: 'A German postal code has 5 digits, such as 20457.',
      password_common: 'Programs guess this password first. Use several words of your own, or a password manager.',
      password_own_name: 'This is your name or address. Use several other words, or a password manager.',
      name_taken: 'This name is in the list already. Add something that tells the two apart.',
    },
  },
  de: {
    forbidden: {
      title: 'Diese Seite ist für Ihre Rolle gesperrt',
      text: (role: string, roles: string) =>
        `Sie sind angemeldet als: ${role}. Diese Seite ist für: ${roles}. Wer das Konto besitzt, kann Ihre Rolle ändern.`,
    },
    notFound: {
      title: 'Diese Seite gibt es nicht',
      text: 'Prüfen Sie die Adresse, oder wählen Sie eine Seite aus der Navigation.',
    },
    problem: {
      title: 'Das hat nicht geklappt',
      text: 'Laden Sie die Seite neu. Hilft das nicht, melden Sie bitte die Vorgangsnummer.',
    },
    noStore: {
      title: 'Hier gibt es keine Filiale',
      text: 'Sie haben in diesem Modus keine Filiale. Wechseln Sie oben zwischen echten Daten und Testdaten, oder bitten Sie um Zugang, wer das Konto besitzt.',
      ofOwner:
        'Dieses Konto hat in diesem Modus keine Filiale. So bekommt es eine: Senden Sie die Daten der Filiale mit einem Schlüssel dieses Modus: untag api insertStore. Wer diese Cloud betreibt, gibt eine echte Filiale frei; die Anleitung heißt „Open the first live store“. Bis dahin wechseln Sie oben in den anderen Modus.',
    },
    backToStart: 'Zur Startseite',
    alarm_disposed:
      'Jemand hat in der Zwischenzeit eine Ursache festgehalten. Halten Sie nur dann eine andere fest, wenn sie falsch ist.',
    package_changed:
      'Jemand anderes hat das Paket geändert, seit Sie dies geöffnet haben. Vergleichen Sie, was sich jetzt ändert, und entscheiden Sie neu.',
    line: (number: string, text: string) => `Zeile ${number} (${text})`,
    changedMeanwhile:
      'Jemand anderes hat dies inzwischen geändert. Ihre Eingaben stehen noch hier: Vergleichen Sie, und speichern Sie noch einmal, um die andere Änderung zu ersetzen.',
    wrongSecret:
      'Der Code oder das Passwort ist falsch, oder der Code wurde schon benutzt. Versuchen Sie es noch einmal; alle 30 Sekunden erscheint ein neuer Code.',
    requestNumber: 'Vorgangsnummer',
    outdatedForm: 'Dieses Formular war zu lange offen. Prüfen Sie die Eingaben und senden Sie es noch einmal.',
    form: 'Die Eingaben wurden nicht gespeichert.',
    codes: {
      'invalid-argument': 'Prüfen Sie die markierten Felder.',
      unauthenticated: 'Sie sind nicht mehr angemeldet. Melden Sie sich an und versuchen Sie es noch einmal.',
      'permission-denied': 'Ihre Rolle oder das Paket dieser Filiale erlaubt das nicht.',
      'not-found': 'Diesen Eintrag gibt es nicht mehr. Laden Sie die Seite neu.',
      'already-exists': 'Das gibt es schon, oder dasselbe Formular wird noch gespeichert.',
      'failed-precondition': 'Der Stand hat sich inzwischen geändert, deshalb geht das nicht mehr.',
      'payload-too-large': 'Das Formular ist zu groß.',
      'unsupported-media-type': 'Der Browser hat ein Formular gesendet, das nicht lesbar ist.',
      'resource-exhausted': 'Zu viele Anfragen. Warten Sie einen Moment und versuchen Sie es noch einmal.',
      unavailable: 'Das ist gerade nicht erreichbar. Versuchen Sie es in einer Minute noch einmal.',
      internal: 'Ein Fehler ist aufgetreten und wurde aufgezeichnet.',
    },
    atMost: (limit: string) => `Höchstens: ${limit}.`,
    atLeast: (limit: string) => `Mindestens: ${limit}.`,
    fields: {
      missing: 'Füllen Sie dieses Feld aus.',
      other: 'Das wird hier nicht angenommen. Ändern Sie es, und versuchen Sie es noch einmal.',
      too_small: 'Das ist zu kurz oder zu klein.',
      too_big: 'Das ist zu lang oder zu groß.',
      invalid_type: 'Das hat die falsche Form.',
      invalid_value: 'Wählen Sie einen der angebotenen Werte.',
      invalid_format: 'Das hat die falsche Form.',
      missing_column: 'Eine Spalte fehlt. Vergleichen Sie die erste Zeile mit der Vorlage.',
      unknown_column: 'Eine Spalte ist unbekannt. Vergleichen Sie die erste Zeile mit der Vorlage.',
      repeated_column: 'Eine Spalte steht zweimal da.',
      empty_file: 'Die Datei enthält keine Artikel.',
      too_many_rows: 'Die Datei hat über 10.000 Zeilen. Teilen Sie sie auf.',
      encrypted: 'Das ist eine alte .xls-Datei, oder sie hat ein Passwort. Speichern Sie sie als .xlsx ohne Passwort.',
      not_a_spreadsheet:
        'Das ist keine Tabelle. Öffnen Sie sie in einem Tabellenprogramm, und speichern Sie sie als .xlsx.',
      product_unknown: 'Nicht alle gewählten Filialen führen diesen Artikel.',
      owner_of_all_stores:
        'Mit dieser Rolle gehören alle Filialen dazu. Wählen Sie alle Filialen, oder eine andere Rolle.',
      credentials_refused:
        'Das System weist diese Angaben zurück. Vergleichen Sie Schlüssel, Namen und Passwörter mit dem System.',
      system_refused: 'Das System antwortet mit einem Fehler. Vergleichen Sie Adresse und Angaben mit dem System.',
      url_refused: 'Diese Adresse ist nicht erlaubt. Geben Sie eine öffentliche Adresse mit https:// ein.',
      mapping: 'Schreiben Sie Paare aus Ihren und unseren Namen, etwa {"sku": "ean"}.',
      customer_differs:
        'Die beiden Kundennummern sind verschieden. Vergleichen Sie sie, und geben Sie zweimal dieselbe ein.',
      postal_code: 'Eine deutsche Postleitzahl hat 5 Ziffern, etwa 20457.',
      password_common:
        'Dieses Passwort raten Programme zuerst. Nehmen Sie mehrere eigene Wörter oder einen Passwortmanager.',
      password_own_name: 'Das ist Ihr Name oder Ihre Adresse. Nehmen Sie andere Wörter oder einen Passwortmanager.',
      name_taken: 'Diesen Namen gibt es in der Liste schon. Ergänzen Sie, was beide unterscheidet.',
    },
  },
})
