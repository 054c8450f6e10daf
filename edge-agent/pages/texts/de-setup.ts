import { pluralOf, type SetupTexts } from './texts.ts'

const plural = pluralOf('de')

export const setupDe: SetupTexts = {
  title: 'Einrichtung',
  configured: 'Eingerichtete Geräte',
  check: 'Prüfen',
  checkHint: 'Eine Prüfung verbindet das Gerät neu. Es ist kurz nicht verfügbar.',
  changeHint: (file) =>
    `Ein hier hinzugefügtes Gerät lässt sich hier 15 Minuten lang ändern oder entfernen. Später seinen Eintrag unter "devices" in ${file} bearbeiten und den Agenten neu starten. Um auch die Anmeldung zu beenden: in der Konsole unter Geräte auf seiner Seite ausmustern.`,
  attached: 'An diesem Rechner angeschlossen',
  nothingAttached: 'Keine serielle Schnittstelle und kein NFC-Leser gefunden.',
  entryHint:
    'Diese Seite kann keine Geräte speichern, weil der Agent ohne Konfigurationsdatei gestartet wurde. Bitte mit --config DATEI neu starten. Oder die deviceId ergänzen und einen Eintrag dieser Seite unter "devices" in die Datei schreiben.',
  entry: 'Eintrag in der Konfigurationsdatei (JSON)',
  setUp: 'Dieses Gerät einrichten',
  byHand: 'Gerät von Hand eingeben',
  byHandHint: 'Für ein Gerät, das hier nicht gefunden wird.',
  driver: 'Anschluss',
  deviceId: 'Kennung des Geräts, nur ohne Code',
  deviceIdHint:
    'Mit Code leer lassen. Ohne Code: die Kennung eines angemeldeten Geräts, das nur liest. Oder eine neue Kennung für einen Scanner eines Geräts, das hier in den letzten 15 Minuten hinzukam.',
  settings: 'Einstellungen',
  moreSettings: 'Weitere Einstellungen',
  details: 'Einzelheiten',
  detailsHint: 'Das Formular füllt diesen Eintrag aus. Er lässt sich auch hier ändern.',
  notSet: 'nicht gesetzt',
  yes: 'ja',
  no: 'nein',
  range: (from, to) => `${from} bis ${to}`,
  otherwise: (value) => `sonst: ${value}`,
  correct: (fields) => `Bitte berichtigen: ${fields}.`,
  codeUnused: 'Ein Code ist noch nicht verbraucht.',
  required: 'Pflichtfeld',
  codeOrId: 'Pflichtfeld, oder unten eine Kennung',
  missing: 'Bitte dieses Feld ausfüllen.',
  unfit: 'Dieser Wert passt nicht.',
  outside: (range) => `Bitte eine Zahl angeben: ${range}.`,
  addHint: (file) =>
    `Ein Gerät wählen, unten eines suchen oder von Hand eingeben. Sein Formular fragt nach einem Einrichtungscode: Die Filialleitung erzeugt ihn in der Konsole auf der Seite Geräte. Das Gerät wird angemeldet, in ${file} gespeichert und lässt sich dann hier prüfen.`,
  code: 'Einrichtungscode',
  codeHint: 'Gilt 15 Minuten für ein Gerät. Jedes Gerät, das etwas schaltet, braucht einen Code.',
  type: 'Art des Geräts',
  name: 'Name',
  add: 'Anmelden und speichern',
  added: (name, file) => `${name} ist in ${file} gespeichert und in Betrieb.`,
  restartNeeded: (file) =>
    `Das Gerät ist gespeichert, aber ${file} enthält weitere Änderungen. Deshalb ist es noch nicht in Betrieb.`,
  next: {
    test: 'Jetzt das Gerät unten testen und seine Seite auf dem Bildschirm am Gerät öffnen. Ein Neustart ist nicht nötig.',
    reader:
      'Jetzt den Leser einrichten, der an diesem Ausgang Etiketten liest: bei „Gehört zum Gerät“ diesen Ausgang wählen. Ohne Leser sieht der Ausgang keine Ware und ist nur eine Schranke. Ein Neustart ist nicht nötig.',
    read: 'Jetzt etwas scannen oder lesen und auf die Seite des Geräts sehen, zu dem es gehört. Ein Neustart ist nicht nötig.',
    restart:
      'Jetzt den Agenten neu starten. Als Dienst: sudo systemctl restart untag-edge. In einem Terminal, auch in der Demo: mit Strg-C anhalten und denselben Befehl wieder ausführen.',
  },
  openPage: 'Seine Seite öffnen',
  pages: 'Zu den Seiten der Geräte',
  noEntry: 'Das ist kein JSON-Objekt. Bitte den Eintrag berichtigen.',
  kinds: { serial: 'Serielle Schnittstelle', nfc: 'NFC-Leser', llrp: 'UHF-Leser', board: 'Relaiskarte' },
  network: 'Im Netz',
  networkHint: 'Findet UHF-Leser (LLRP) und Relaiskarten (Modbus TCP) an ihrer Adresse. Die Suche bewegt nichts.',
  address: 'Adresse des Geräts',
  look: 'Suchen',
  change: 'Ändern oder entfernen',
  saveChange: 'Änderung speichern',
  remove: 'Gerät entfernen',
  removeQuestion:
    'Dieses Gerät aus der Konfiguration entfernen? Wurde es angemeldet, danach auch in der Konsole ausmustern.',
  removed: 'Entfernt. Der Agent benutzt es noch, bis er neu gestartet ist.',
  changed: (file) => `Die Änderung ist in ${file} gespeichert, aber noch nicht in Betrieb.`,
  changedInUse: (file) => `Die Änderung ist in ${file} gespeichert und in Betrieb.`,
  noAddress:
    'Das ist keine Adresse. Bitte einen Rechnernamen oder eine IP-Adresse wie 10.0.0.7 schreiben, mit Port, falls er nicht der übliche ist.',
  searchCauses: {
    other_device:
      'Dort antwortet ein Gerät, aber kein UHF-Leser (LLRP) und keine Relaiskarte (Modbus TCP). Bitte Adresse und Port prüfen.',
    refused:
      'Ein Gerät hat diese Adresse, aber am Port hört nichts zu. Bitte den Port prüfen, und ob Leser oder Karte an ist.',
    unreachable: 'An dieser Adresse antwortet kein Gerät. Bitte Kabel, Strom und Adresse prüfen.',
    unknown_name: 'Kein Gerät hat diesen Namen. Bitte die IP-Adresse des Geräts benutzen.',
  },
  failed: 'Das hat nicht geklappt. Bitte noch einmal versuchen.',
  problems: {
    code_missing: 'Bitte den Einrichtungscode eingeben. Ein Gerät, das nur liest, darf stattdessen eine Kennung haben.',
    setup_code_wrong: 'Dieser Code ist falsch oder durch einen neueren ersetzt. Bitte mit der Leitung vergleichen.',
    setup_code_used: 'Dieser Code ist schon verbraucht. Bitte die Leitung um einen neuen bitten.',
    setup_code_expired: 'Dieser Code ist älter als 15 Minuten. Bitte die Leitung um einen neuen bitten.',
    setup_code_needed:
      'Dieser Eintrag schaltet etwas oder bedient ein anderes Gerät und braucht deshalb einen Einrichtungscode. Oder ein Administrator schreibt ihn in die Konfigurationsdatei und startet den Agenten neu.',
    registration_refused: 'Die Cloud hat das Gerät abgelehnt.',
    cloud_unreachable: 'Keine Verbindung zur Cloud. Bitte mit demselben Code noch einmal versuchen.',
    config_not_written:
      'Die Konfigurationsdatei lässt sich nicht schreiben. Bitte beheben und denselben Code noch einmal benutzen.',
    change_not_allowed: 'Ein Gerät lässt sich hier nur in den 15 Minuten ändern, nachdem es hier hinzukam.',
    operator_required: 'Bitte zuerst auf der Seite des Ausgangs anmelden. Dann hier noch einmal versuchen.',
    busy: 'Ein anderer Test läuft. Bitte warten, bis er beendet ist.',
    test_not_allowed: 'Ein Test geht nur in den 15 Minuten nach der Anmeldung mit einem Code.',
    entry_fault: 'Der Eintrag hat einen Fehler. Bitte berichtigen.',
    'invalid-argument':
      'Der Einrichtungscode fehlt, oder der Eintrag hat einen Fehler. Ein Code ist noch nicht verbraucht.',
  },
  test: 'Test',
  testHint: 'Bitte das Gerät ansehen. Jede Freigabe wird aufgezeichnet.',
  outputs: { green: 'Grüne Lampe', amber: 'Gelbe Lampe', siren: 'Sirene', release: 'Freigabe' },
  tested: {
    confirmed: 'Das Gerät hat es ausgeführt.',
    failed: 'Das Gerät hat es nicht ausgeführt.',
    unknown: 'Das Gerät hat nicht geantwortet. Bitte ansehen.',
    not_supported: 'Dieses Gerät hat diesen Ausgang nicht.',
  },
  walk: 'Durchgangstest',
  walkHint: (seconds) => `Innerhalb von ${seconds} Sekunden ein Etikett durch den Ausgang tragen.`,
  noWalk: 'Einen Durchgangstest gibt es erst mit einem Leser für Etiketten.',
  walked: (tags, left, alarms) =>
    `${plural(tags, 'Etikett', 'Etiketten')} gelesen, ${left} hinausgegangen, ${alarms} mit Alarm.`,
}
