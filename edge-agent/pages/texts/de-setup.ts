import { pluralOf } from './plural.ts'
import type { SetupTexts } from './setup-texts.ts'

const plural = pluralOf('de')

export const setupDe: SetupTexts = {
  title: 'Einrichtung',
  configured: 'Eingerichtete Geräte',
  check: 'Prüfen',
  checkHint: 'Eine Prüfung verbindet das Gerät neu. Es ist kurz nicht verfügbar.',
  attached: 'An diesem Rechner angeschlossen',
  nothingAttached: 'Keine serielle Schnittstelle und kein NFC-Leser gefunden.',
  entryHint: 'Die deviceId ergänzen und den Eintrag unter "devices" in die Konfigurationsdatei schreiben.',
  entry: 'Vorgeschlagener Eintrag',
  addHint: (file) =>
    `Einen Einrichtungscode eingeben: Die Filialleitung erzeugt ihn in der Konsole auf der Seite Geräte. Das Gerät wird angemeldet, in ${file} gespeichert und lässt sich dann hier prüfen.`,
  code: 'Einrichtungscode',
  codeHint: 'Gilt 15 Minuten für ein Gerät. Ist das Gerät schon angemeldet: leer lassen und die deviceId ergänzen.',
  type: 'Art des Geräts',
  name: 'Name (freiwillig)',
  add: 'Anmelden und speichern',
  added: (name, file) => `${name} ist in ${file} gespeichert und in Betrieb.`,
  restartNeeded: (file) =>
    `Das Gerät ist gespeichert, aber ${file} enthält weitere Änderungen. Den Agenten neu starten, um das Gerät zu benutzen.`,
  noEntry: 'Das ist kein JSON-Objekt. Bitte den Eintrag berichtigen.',
  kinds: { serial: 'Serielle Schnittstelle', nfc: 'NFC-Leser', llrp: 'UHF-Leser' },
  llrp: 'UHF-Leser im Netz (LLRP)',
  address: 'Adresse des Lesers',
  look: 'Suchen',
  failed: 'Das hat nicht geklappt. Bitte noch einmal versuchen.',
  problems: {
    setup_code_wrong: 'Dieser Code ist falsch oder durch einen neueren ersetzt. Bitte mit der Leitung vergleichen.',
    setup_code_used: 'Dieser Code ist schon verbraucht. Bitte die Leitung um einen neuen bitten.',
    setup_code_expired: 'Dieser Code ist älter als 15 Minuten. Bitte die Leitung um einen neuen bitten.',
    registration_refused: 'Die Cloud hat das Gerät abgelehnt.',
    cloud_unreachable: 'Keine Verbindung zur Cloud. Bitte mit demselben Code noch einmal versuchen.',
    config_not_written:
      'Die Konfigurationsdatei lässt sich nicht schreiben. Bitte beheben und denselben Code noch einmal benutzen.',
    test_not_allowed: 'Ein Test geht nur in den 15 Minuten nach der Anmeldung mit einem Code.',
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
  walked: (tags, left, alarms) =>
    `${plural(tags, 'Etikett', 'Etiketten')} gelesen, ${left} hinausgegangen, ${alarms} mit Alarm.`,
}
