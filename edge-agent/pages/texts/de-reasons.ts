import type { Texts } from './texts.ts'

/** German texts of the reasons for a denial. */
export const reasonsDe: Texts['reasons'] = {
  token_invalid: {
    what: 'Dieser Beleg gilt hier nicht.',
    todo: 'Er ist gefälscht, unleserlich oder aus einer anderen Filiale. Noch einmal scannen oder an der Servicestation fragen.',
  },
  token_expired: { what: 'Dieser Beleg ist abgelaufen.', todo: 'Bitte an der Kasse nach dem Kauf fragen.' },
  token_revoked: {
    what: 'Dieser Beleg gilt nicht mehr.',
    todo: 'Der Kauf wurde storniert oder zurückgegeben. Bitte an der Kasse fragen.',
  },
  device_unknown: {
    what: 'Dieses Gerät ist nicht registriert.',
    todo: 'Ein anderes Gerät benutzen und die Technik rufen.',
  },
  device_revoked: { what: 'Dieses Gerät ist außer Dienst.', todo: 'Ein anderes Gerät benutzen.' },
  store_mismatch: {
    what: 'Das gehört zu einer anderen Filiale.',
    todo: 'Freigeben geht nur in der Filiale des Kaufs.',
  },
  clock_untrusted: {
    what: 'Die Uhrzeit dieses Geräts ist nicht bestätigt.',
    todo: 'Warten, bis der Agent online ist, oder das Etikett von Hand lösen.',
  },
  policy_stale: {
    what: 'Diese Filiale war zu lange offline.',
    todo: 'Nur Personal darf jetzt freigeben. Bitte das Netzwerk prüfen.',
  },
  device_not_capable: { what: 'Dieses Gerät kann das nicht.', todo: 'An einem anderen Gerät versuchen.' },
  technology_mismatch: {
    what: 'Dieses Etikett passt nicht zu diesem Gerät.',
    todo: 'An einem anderen Gerät versuchen.',
  },
  item_unknown: { what: 'Diese Ware ist nicht bekannt.', todo: 'Den Beleg scannen und mit der Ware vergleichen.' },
  item_not_paid: { what: 'Diese Ware ist nicht bezahlt.', todo: 'Bitte zuerst an der Kasse bezahlen.' },
  already_redeemed: {
    what: 'Dieser Beleg oder dieses Etikett wurde schon benutzt.',
    todo: 'Jedes Etikett wird nur einmal freigegeben. Bitte an der Servicestation fragen.',
  },
  authorization_outstanding: {
    what: 'Ein anderes Gerät gibt das gerade frei.',
    todo: 'Kurz warten und noch einmal scannen.',
  },
  action_not_allowed: { what: 'Für diese Ware ist das nicht erlaubt.', todo: 'Bitte an der Kasse fragen.' },
  workflow_not_allowed: {
    what: 'An diesem Gerät ist das nicht erlaubt.',
    todo: 'Bitte zur Kasse oder zur Servicestation gehen.',
  },
  manual_assistance_required: {
    what: 'Hier muss das Personal freigeben.',
    todo: 'Ware mit dem Beleg vergleichen, dann anmelden und freigeben.',
  },
  limit_exceeded: {
    what: 'Die Grenze für Freigaben ist erreicht.',
    todo: 'Warten, bis der Agent online ist, oder eine andere Person freigeben lassen.',
  },
}
