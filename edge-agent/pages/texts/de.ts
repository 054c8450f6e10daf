import { elapsedText } from '../model/elapsed.ts'
import { setupDe } from './de-setup.ts'
import { pluralOf, type Texts } from './texts.ts'

/** German texts of the reasons for a denial. */
export const reasonsDe: Texts['reasons'] = {
  token_invalid: {
    what: 'Dieser Beleg lässt sich hier nicht lesen.',
    todo: 'Bitte noch einmal scannen. Das Personal hilft sonst weiter und sucht den Kauf.',
  },
  token_expired: {
    what: 'Dieser Beleg ist abgelaufen.',
    todo: 'Das Personal sucht den Kauf, meldet sich an und gibt das Etikett frei.',
  },
  token_revoked: {
    what: 'Dieser Einkauf wurde erstattet oder storniert.',
    todo: 'Bitte das Personal fragen, wenn wir noch helfen können.',
  },
  device_unknown: {
    what: 'Dieses Gerät ist nicht registriert.',
    todo: 'Bitte ein anderes Gerät benutzen, oder das Personal fragen.',
  },
  device_revoked: {
    what: 'Dieses Gerät ist außer Dienst.',
    todo: 'Bitte ein anderes Gerät benutzen, oder das Personal fragen.',
  },
  store_mismatch: {
    what: 'Das gehört zu einer anderen Filiale.',
    todo: 'Freigeben geht nur in der Filiale des Kaufs.',
  },
  locker_mismatch: {
    what: 'Dieser Code öffnet diese Tür nicht.',
    todo: 'Bitte zum richtigen Fach gehen, oder an der Theke fragen.',
  },
  clock_untrusted: {
    what: 'Die Uhrzeit dieses Geräts ist nicht bestätigt.',
    todo: 'Bitte an eine Station mit Personal gehen: Dort ist die Freigabe möglich.',
  },
  policy_stale: {
    what: 'Diese Filiale war zu lange offline.',
    todo: 'Bitte an eine Station mit Personal gehen: Dort ist die Freigabe möglich.',
  },
  device_not_capable: {
    what: 'Dieses Gerät kann das nicht.',
    todo: 'Bitte mit der Ware an ein anderes Gerät gehen: Selbstablöser oder Servicestation.',
  },
  technology_mismatch: {
    what: 'Dieses Etikett passt nicht zu diesem Gerät.',
    todo: 'Bitte mit der Ware an ein anderes Gerät gehen: Selbstablöser oder Servicestation.',
  },
  item_unknown: { what: 'Diese Ware ist nicht bekannt.', todo: 'Den Beleg scannen und mit der Ware vergleichen.' },
  recalled: {
    what: 'Diese Ware wird zurückgerufen.',
    todo: 'Sie bleibt hier: bitte dem Personal geben. Das Personal legt sie beiseite und liest in der Konsole, was damit zu tun ist.',
  },
  item_not_paid: {
    what: 'Für diese Ware liegt noch keine Zahlung vor.',
    todo: 'Bitte an der Kasse bezahlen, oder dort den Beleg zeigen. Zurückgehaltene Ware bleibt hier.',
  },
  no_tagged_goods: {
    what: 'Dieser Einkauf hat keine gesicherte Ware.',
    todo: 'Hat eine Ware doch ein Etikett, vergleicht das Personal Ware und Beleg.',
  },
  already_redeemed: {
    what: 'Etikett oder Beleg ist schon freigegeben.',
    todo: 'Das geht nur einmal. Ein Etikett, das noch dran ist, löst das Personal von Hand.',
  },
  authorization_outstanding: {
    what: 'Ein anderes Gerät gibt das gerade frei.',
    todo: 'Kurz warten und noch einmal scannen.',
  },
  action_not_allowed: {
    what: 'Für diese Ware ist das nicht erlaubt.',
    todo: 'Die Regeln der Filiale verbieten es, auch dem Personal. Bitte die Filialleitung fragen.',
  },
  workflow_not_allowed: {
    what: 'An diesem Gerät ist das nicht erlaubt.',
    todo: 'Bitte zur Kasse oder zur Servicestation gehen.',
  },
  manual_assistance_required: {
    what: 'Das Personal muss freigeben.',
    todo: 'Personal: Ware mit dem Beleg vergleichen, freigeben oder von Hand lösen.',
  },
  limit_exceeded: {
    what: 'Die Grenze für Freigaben ist erreicht.',
    todo: 'Nach der Grenze je Stunde gibt anderes Personal frei.',
  },
  tag_not_read: { what: 'Das Etikett wurde nicht gelesen.', todo: 'Bitte die Ware an den Leser halten.' },
}

const plural = pluralOf('de')
const STAGES = { stale: 'veraltet', expired: 'abgelaufen' }

export const de: Texts = {
  language: 'de',
  languageName: 'Deutsch',
  needsScript: 'Diese Seite braucht JavaScript. Der Scanner funktioniert auch ohne.',

  deviceTypes: {
    pos_deactivator: {
      name: 'Servicestation',
      prompt: 'Beleg scannen',
      hint: 'Den QR-Code des Belegs vor den Scanner halten.',
    },
    self_checkout_detacher: {
      name: 'Selbstablöser',
      prompt: 'Bezahlte Ware auflegen',
      hint: 'Das Hartetikett in den Ablöser halten, oder den Beleg scannen.',
    },
    exit_gate: { name: 'Ausgang', prompt: 'Beleg scannen', hint: 'Den QR-Code des Belegs vor den Scanner halten.' },
    handheld_reader: {
      name: 'Handgerät',
      prompt: 'Etikett lesen',
      hint: 'Das Etikett lesen, oder seine Nummer oder einen Abholcode scannen.',
    },
    cabinet_unlocker: {
      name: 'Vitrine',
      prompt: 'Beleg oder Code scannen',
      hint: 'Beleg oder Abholcode scannen, um zu öffnen. Personal meldet sich an und scannt die Ware.',
    },
  },
  anyDevice: { name: 'Station', prompt: 'Beleg scannen', hint: 'Den QR-Code des Belegs vor den Scanner halten.' },
  chooseDevice: 'Welches Gerät?',
  noDevices: 'Hier ist noch kein Gerät eingerichtet. Bitte Geräte in die Konfigurationsdatei des Agenten eintragen.',
  noSuchDevice: 'Dieses Gerät hat dieser Agent nicht. Bitte eines wählen:',
  stationPage: 'Station',
  gatePage: 'Anzeige am Ausgang',
  pair: {
    title: 'Browser koppeln',
    what: 'Dieser Browser ist noch nicht gekoppelt.',
    run: 'Diesen Befehl auf dem Rechner ausführen, auf dem der Agent läuft:',
    command: 'Befehl',
    open: 'Den Link, den er ausgibt, in diesem Browser öffnen. Er gilt einmal und 15 Minuten lang.',
    paste: 'Oder den Link hier einfügen:',
    send: 'Koppeln',
    wrong: 'Dieser Link wurde schon benutzt oder ist älter als 15 Minuten. Mit dem Befehl oben einen neuen erzeugen.',
    programs: 'Programme senden den Zugangsschlüssel, den „untag edge credential“ ausgibt.',
  },
  notHere: {
    what: 'Diese Seite gibt es nur am Gerät selbst.',
    todo: 'Bitte an dem Rechner öffnen, auf dem der Agent läuft.',
  },
  problems: {
    notFound: {
      what: 'Diese Seite gibt es nicht',
      todo: 'Bitte die Adresse prüfen, oder ein Gerät wählen.',
    },
    forPrograms: {
      what: 'Diese Adresse ist für Programme',
      todo: 'Bitte die Seiten der Geräte benutzen.',
    },
    hostNotAllowed: {
      what: 'Der Agent nimmt diesen Hostnamen nicht an',
      todo: 'Den Namen mit Port in der Konfiguration des Agenten unter „hosts“ eintragen, oder die Seite am Rechner des Agenten über 127.0.0.1 öffnen.',
    },
    unavailable: {
      what: 'Das ist gerade nicht möglich',
      todo: 'Bitte die Seite in einer Minute neu laden. Hilft das nicht, die Technik rufen.',
    },
  },
  technical: 'Technische Meldung (Englisch)',

  online: 'Online',
  offline: 'Offline',
  since: (ms) =>
    elapsedText(ms, { since: 'seit', underAMinute: 'weniger als 1 min', minutes: 'min', hours: 'h', days: 'Tagen' }),
  eventsWait: (count) => plural(count, 'Ereignis wartet', 'Ereignisse warten'),
  policy: (stage) => `Regeln ${STAGES[stage]}`,
  noPolicy: 'Keine Regeln',
  clockUntrusted: 'Uhrzeit nicht bestätigt',
  deviceStates: {
    absent: 'Gerät fehlt',
    opening: 'Gerät wird gesucht',
    identifying: 'Gerät meldet sich',
    ready: 'Gerät bereit',
    degraded: 'Gerätestörung',
    stopped: 'Gerät angehalten',
    unknown_device: 'Gerät nicht registriert',
    device_of_another_agent: 'Gerät eines anderen Agenten',
    decommissioned_device: 'Gerät außer Betrieb',
  },
  registrationFixes: {
    unknown_device: (deviceId) =>
      `Diese Filiale hat kein Gerät ${deviceId}. Alle Freigaben werden abgelehnt. Bitte die Technik rufen: deviceId in der Konfiguration berichtigen, oder das Gerät in dieser Filiale mit registerDevice registrieren und die neue Kennung eintragen.`,
    device_of_another_agent: (deviceId) =>
      `Das Gerät ${deviceId} gehört zu einem anderen Agenten der Filiale. Alle Freigaben werden hier abgelehnt. Bitte die Technik rufen: das Gerät aus dieser Konfiguration entfernen, oder es mit updateDevice und agentId diesem Agenten zuordnen.`,
    decommissioned_device: (deviceId) =>
      `Das Gerät ${deviceId} wurde außer Betrieb genommen. Alle Freigaben werden abgelehnt. Bitte die Technik rufen: das Gerät mit registerDevice neu registrieren und die neue Kennung eintragen, oder es aus der Konfiguration entfernen.`,
  },
  doors: { shut: 'Tür zu', open: 'Tür offen', forced: 'Tür aufgebrochen', left_open: 'Tür steht offen' },
  deviceAway:
    'Das Gerät ist gestört und gibt nichts frei. Bitte die Technik rufen: Einzelheiten stehen auf der Seite „Einrichtung“.',
  feederAway: (deviceId) =>
    `Der Leser ${deviceId} dieses Geräts ist nicht verbunden. Bitte die Technik rufen: Einzelheiten stehen auf der Seite „Einrichten“.`,
  findings: {
    reader_filters:
      'Ein Leser lässt Lesungen weg, die das Gate braucht. Personen können unbemerkt durchgehen. Bitte die Technik rufen.',
    reader_mode: 'Ein Leser ist in einer Betriebsart, die ein Gate nicht nutzen kann. Bitte die Technik rufen.',
    reader_session: 'Etiketten schweigen zu lange, das Gate kann einen Durchgang verpassen. Bitte die Technik rufen.',
    reader_antenna: 'Eine Antenne des Gates liest nicht. Bitte das Kabel prüfen oder die Technik rufen.',
    unreadable_data: 'Der Agent kann nicht lesen, was ein Gerät sendet. Bitte die Technik rufen.',
    echo: 'Die Leitung wiederholt jeden Befehl: Nichts beweist, dass das Gerät sich bewegt. Bitte die Technik rufen.',
    too_many_tags: 'Zu viele Etiketten am Leser. Bitte Ware und leere Etiketten vom Leser entfernen.',
    no_tag_reader:
      'Kein Leser liest hier Etiketten. Dieser Ausgang sieht keine Ware und alarmiert nie. Einen Leser einrichten, außer es ist nur eine Schranke.',
    wrong_address: 'Es antwortet eine andere Adresse als die eingestellte. Bitte die Technik rufen.',
  },
  emergency: {
    title: 'Notfall',
    leave: { what: 'Bitte verlassen Sie jetzt das Geschäft.', todo: 'Bitte folgen Sie dem Personal.' },
    opened: 'Notfall: Dieser Ausgang ist offen, bis die Brandmeldezentrale oder der Schalter zurückgesetzt ist.',
    leaveElsewhere: 'Bitte gehen Sie jetzt durch einen offenen Ausgang.',
    elsewhere: 'Notfall: Bitte gehen Sie jetzt durch einen offenen Ausgang.',
    lost: (devices) => `Der Notfall-Eingang von ${devices} ist nicht lesbar: Bitte Netzwerk und Strom prüfen.`,
  },
  tooOld: (release) =>
    `Dieser Agent ist zu alt für die neuen Regeln der Filiale (nötig ist Version ${release}) und nutzt die bisherigen. Bitte die Filialleitung rufen: Der Agent muss aktualisiert werden.`,
  withoutItems:
    'Dieser Agent kennt die Waren der Filiale noch nicht. Bis er die Cloud erreicht, alarmieren Ausgänge auch bei bezahlter Ware: Bitte mit dem Bon vergleichen.',
  ledgerDoubts: {
    revoked:
      'Dieser Agent wurde gesperrt und gibt nichts frei. Bitte die Filialleitung rufen: Der Agent muss neu angemeldet werden.',
    forked:
      'Von diesem Agenten gibt es zwei Kopien. Offline gibt er nichts frei. Bitte die Filialleitung rufen: Eine Kopie muss entfernt werden.',
    put_back:
      'Diesem Agenten fehlen Einträge: Er wurde aus einer Kopie wiederhergestellt oder beschädigt. Offline gibt er vorerst nichts frei.',
  },
  lost: {
    what: 'Agent nicht erreichbar',
    todo: 'Diese Seite versucht weiter, sich zu verbinden. Bleibt es dabei, die Technik rufen.',
  },
  forShoppers: {
    fault: 'Dieses Gerät ist gerade gestört. Bitte Personal fragen.',
    note: 'Ein Hinweis für das Personal steht hier nach dem Anmelden.',
    lost: 'Bitte Personal fragen. Diese Seite verbindet sich von selbst wieder.',
  },
  lostSince: (time) => `Keine Antwort seit ${time} Uhr.`,
  asOf: (time) => `Stand ${time} Uhr`,
  notChecked: {
    what: 'Belege lassen sich gerade nicht prüfen.',
    todo: 'Bitte einen Moment warten, oder das Personal fragen: Wir helfen Ihnen.',
  },

  soundOn: 'Ton: an',
  soundOff: 'Ton: aus',
  fullScreen: 'Vollbild',

  busy: 'Wird geprüft …',
  granted: {
    deactivate_label: 'Freigegeben',
    detach_hard_tag: 'Freigegeben',
    suppress_alarm: 'Kein Alarm',
    authorize_exit: 'Ausgang frei',
    unlock_fixture: 'Geöffnet',
    verify_item_status: 'Auskunft',
  },
  labelsLeft: (count) => `Noch ${plural(count, 'Etikett', 'Etiketten')}`,
  stillOn: (goods) => `Als Nächstes: ${goods}`,
  andMore: (count) => `+ ${count} weitere`,
  item: 'Artikel',
  allDone: (count) => `Alle ${plural(count, 'Etikett', 'Etiketten')} erledigt.`,
  moreForStaff: (count) => `Danach zum Personal: Es gibt ${count} weitere Artikel frei.`,
  leftForStaff: (count) => `Noch ${count} Artikel`,
  restNeedsStaff: 'Dieses Etikett ist freigegeben. Den Rest des Belegs gibt das Personal frei.',
  refused: 'Noch nicht freigegeben',
  nothingToRelease: 'Nichts freizugeben',
  callStaff: 'Bitte Personal fragen',
  unknown: {
    what: 'Ist das Etikett ab?',
    why: 'Das Gerät hat die Freigabe nicht bestätigt.',
    todo: 'Bitte nachsehen. Ist das Etikett noch dran, Personal rufen. Nicht noch einmal scannen.',
  },
  failed: {
    what: 'Nicht ausgelöst',
    why: 'Freigegeben, aber das Gerät hat sich nicht bewegt.',
    todo: 'Etikett neu auflegen und noch einmal versuchen. Klappt es nicht, Personal rufen.',
  },
  reasons: reasonsDe,
  noReason: 'Es wurde kein Grund genannt.',
  notUnderstood: {
    unknown_code: {
      headline: 'Nicht erkannt',
      what: 'Dieser Code ist kein Beleg.',
      todo: 'Bitte den QR-Code auf dem Beleg scannen.',
    },
    unknown_code_or_number: {
      headline: 'Nur mit Personal',
      what: 'Eine Einkaufsnummer gilt nur mit Personal.',
      todo: 'Bitte den QR-Code auf dem Beleg scannen, oder das Personal fragen.',
    },
    needs_connection: {
      headline: 'Nur mit Verbindung',
      what: 'Dieser Code braucht eine Verbindung.',
      todo: 'Bitte später noch einmal versuchen, oder das Personal fragen.',
    },
    needs_staff: {
      headline: 'Nur mit Personal',
      what: 'Dieser Code gilt nur mit Personal.',
      todo: 'Bitte den QR-Code auf dem Beleg scannen, oder das Personal fragen.',
    },
    purchase_not_paid: {
      headline: 'Noch nicht bezahlt',
      what: 'Dieser Einkauf ist noch nicht bezahlt.',
      todo: 'Bitte bezahlen, dann den Beleg scannen.',
    },
    number_ambiguous: {
      headline: 'Mehrere Einkäufe',
      what: 'Mehrere Einkäufe enden mit diesen Zeichen.',
      todo: 'Personal: bitte die ganze Nummer des Einkaufs eingeben.',
    },
    code_for_exit: {
      headline: 'Für den Ausgang',
      what: 'Dieser Code öffnet die Schranke am Ausgang.',
      todo: 'Bitte die Ware auflegen. Bleibt ein Etikett dran, das Personal fragen.',
    },
    receipt_expired: {
      headline: 'Beleg abgelaufen',
      what: 'Dieser Beleg ist älter als ein Tag.',
      todo: 'Bitte das Personal fragen.',
    },
    product_code: {
      headline: 'Kein Beleg',
      what: 'Das ist der Strichcode der Ware.',
      todo: 'Bitte den QR-Code auf dem Beleg scannen.',
    },
    wrong_badge: {
      headline: 'Ausweis ungültig',
      what: 'Dieser Ausweis gilt hier nicht.',
      todo: 'Mit Name und PIN anmelden, oder einen neuen Ausweis holen.',
    },
    locked: {
      headline: 'Bitte warten',
      what: 'Zu viele falsche Versuche.',
      todo: 'Kurz warten, dann noch einmal versuchen.',
    },
    no_store_key: {
      headline: 'Noch nicht bereit',
      what: 'Der Agent kann PINs und Ausweise noch nicht prüfen.',
      todo: 'Er holt einen Schlüssel aus der Cloud. Gleich noch einmal versuchen, sonst das Netz prüfen.',
    },
    out_of_order: {
      headline: 'Bitte Personal fragen',
      what: 'Die Prüfung ist wegen einer Störung fehlgeschlagen.',
      todo: 'Bitte noch einmal scannen, oder einen Moment warten: Das Personal hilft Ihnen.',
    },
  },
  receiptRead: { what: 'Beleg gelesen', todo: 'Jetzt die Ware auflegen, ein Stück nach dem anderen.' },
  alreadyReleased: 'Schon freigegeben',
  nothingLeft: 'Alle Etiketten dieses Belegs wurden schon freigegeben.',
  nothingLeftSince: (when, deviceName) =>
    `Alle Etiketten sind ab, zuletzt am ${when}${deviceName === undefined ? '' : ` an diesem Gerät: ${deviceName}`}.`,
  nothingLeftAdvice: 'Ist noch ein Etikett an der Ware, löst es das Personal von Hand.',
  alarms: {
    door_forced: { what: 'Die Tür wurde ohne Freigabe geöffnet.', todo: 'Bitte sofort nachsehen und schließen.' },
    door_left_open: { what: 'Die Tür steht zu lange offen.', todo: 'Bitte nachsehen und schließen.' },
    unexpected_release: {
      what: 'Ein Etikett wurde ohne Freigabe gelöst.',
      todo: 'Bitte prüfen, welches Etikett es ist und ob die Ware bezahlt ist.',
    },
  },
  orders: {
    pending: { what: 'Bestellung noch nicht bestätigt', todo: 'Bitte die Bestellung erst bestätigen.' },
    confirmed: { what: 'Bestellung noch nicht bereit', todo: 'Sie muss noch zusammengestellt werden.' },
    preparing: { what: 'Bestellung noch nicht bereit', todo: 'Sie wird gerade zusammengestellt.' },
    ready: { what: 'Herausgeben', todo: 'Der Abholcode stimmt.' },
    picked_up: { what: 'Schon abgeholt', todo: 'Bitte nichts herausgeben.' },
  },
  unknownOrder: { what: 'Bestellung nicht abholbar', todo: 'Bitte die Bestellung prüfen.' },
  itemStatuses: {
    sellable: 'nicht bezahlt',
    paid: 'bezahlt',
    reserved_bopis: 'zur Abholung reserviert',
    picked_up: 'abgeholt',
    returned: 'zurückgegeben',
    transfer_in_transit: 'unterwegs in eine andere Filiale',
    cancelled: 'Kauf storniert',
    exception_hold: 'zurückgehalten',
  },
  statusUnknown: 'Der Status dieser Ware ist nicht bekannt.',
  decidedOffline: 'Offline entschieden.',
  last: (time) => `Zuletzt um ${time}`,

  nextLabel: 'Nächstes Etikett',
  tryAgain: 'Noch einmal versuchen',
  approve: 'Mit PIN freigeben',
  approveThenScan: 'Anmelden und noch einmal scannen.',
  done: 'Fertig',

  typeCode: 'Code oder Einkaufsnummer',
  check: 'Prüfen',
  tooLong: 'Dieser Code ist zu lang.',
  requestFailed: {
    unreachable: {
      what: 'Der Agent antwortet nicht.',
      todo: 'Bitte gleich noch einmal versuchen.',
    },
    ledger_full: {
      what: 'Die Festplatte dieses Rechners ist voll.',
      todo: 'Bis Platz frei ist, wird nichts freigegeben. Bitte die Technik rufen.',
    },
    ledger_unavailable: {
      what: 'Das Protokoll der Freigaben ist gestört.',
      todo: 'Es wird nichts freigegeben. Bitte die Technik rufen.',
    },
    other: { what: 'Das hat nicht geklappt.', todo: 'Noch einmal versuchen. Klappt es nicht, die Technik rufen.' },
  },

  signIn: 'Anmelden',
  signOut: 'Abmelden',
  signedInAs: (name) => `Angemeldet: ${name} (alle Bildschirme)`,
  whoAreYou: 'Wer sind Sie?',
  badgeToo: 'Oder den Ausweis scannen.',
  signInFor:
    'Angemeldete finden Einkäufe über die Nummer, genehmigen Freigaben und bearbeiten Alarme. Die Anmeldung gilt auf allen Bildschirmen dieses Geräts, bis zum Abmelden oder 15 Minuten nach der letzten Handlung.',
  noOperators: 'Für diese Filiale ist kein Personal registriert.',
  badgeOnly: 'nur mit Ausweis',
  pin: 'PIN',
  pinOf: (name) => `PIN von ${name}`,
  deleteDigit: 'Letzte Ziffer löschen',
  confirm: 'OK',
  close: 'Schließen',
  back: 'Zurück',
  wrongPin: 'Die PIN ist falsch.',
  pinTooShort: 'Diese PIN ist zu kurz. PINs haben 6 bis 12 Ziffern, ältere mindestens 4.',
  lockedFor: (seconds) => `Gesperrt nach zu vielen falschen Versuchen. In ${seconds} s noch einmal versuchen.`,
  signInFailed: 'Die Anmeldung ist fehlgeschlagen. Bitte noch einmal versuchen.',

  setup: setupDe,

  gate: {
    ready: 'Bereit',
    readyHint: 'Beleg bitte an den Leser halten.',
    wayOut: 'Ausgang offen',
    wayOutHint: 'Notfall: Bitte hier hinausgehen.',
    outHint: 'Dieser Ausgang ist gerade gestört.',
    noTagReader: 'Ohne Etikettenleser',
    green: 'Danke, auf Wiedersehen',
    greenHint: 'Sie können gehen.',
    amber: 'Bitte zum Personal',
    amberHint: 'Wir helfen gern weiter.',
    alarm: 'Alarm',
    stuck: 'Freigegeben, aber der Ausgang hat sich nicht geöffnet.',
    lost: 'Anzeige gestört',
    lostHint: 'Bitte das Personal ansprechen.',
    lastDecisions: 'Alarme, letzte Entscheidungen',
    moreOpen: (count, isCut) =>
      `${isCut ? 'Mindestens ' : ''}${plural(count, 'weiterer offener Alarm', 'weitere offene Alarme')}`,
    noDecisions: 'Noch keine.',
    toNewest: 'Zu den neuesten',
    recalled: 'Zurückgerufen: bleibt hier, auch wenn sie bezahlt ist',
    held: 'Zurückgehalten: bleibt hier, bis das Büro sie freigibt',
    inEmergency: 'Während eines Notfalls',
    listSince: (start) => `Seit ${start}, und offene Alarme vom Tag davor. Ältere: Konsole, Alarme.`,
    listCut: 'Nur die neuesten offenen Alarme. Alle: Konsole, Alarme.',
    recovered: 'Wert der sichergestellten Ware (EUR), freiwillig',
    amountLike: 'wie 49,90',
    noAmount: 'Das ist kein Betrag. Bitte wie 49,90 schreiben, oder das Feld leer lassen.',
    handle: 'Bearbeiten',
    change: 'Ändern',
    careBy: (name) => (name === '' ? 'Jemand kümmert sich' : `${name} kümmert sich`),
    handleTitle: (time) => `Alarm um ${time}: Was war es?`,
    recorded: (cause) => `Erfasst: ${cause}. Nur ändern, wenn das falsch ist. Beides bleibt erhalten.`,
    steps: {
      acknowledged: 'Ich kümmere mich',
      real: 'Diebstahl',
      unintentional: 'Bezahlen vergessen',
      tag_left_on: 'Bezahlt, Etikett war noch dran',
      staff_error: 'Personal trug die Ware',
      phantom: 'Fehlalarm, keine Ware',
    },
    notStored: 'Der Agent antwortet wieder. Die Ursache ist nicht gespeichert: Bitte noch einmal wählen.',
    tooLate: 'Diese Anzeige hat den Alarm nicht mehr. Bitte in der Konsole bearbeiten.',
  },
}
