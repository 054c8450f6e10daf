import type { Texts } from './texts.ts'

/** German texts of the reasons for a denial. */
export const reasonsDe: Texts['reasons'] = {
  token_invalid: {
    what: 'Dieser Beleg gilt hier nicht.',
    todo: 'Er ist nicht echt, unleserlich oder aus einer anderen Filiale. Noch einmal scannen.',
  },
  token_expired: { what: 'Dieser Beleg ist abgelaufen.', todo: 'Den Kauf an der Kasse nachsehen lassen.' },
  token_revoked: {
    what: 'Dieser Beleg gilt nicht mehr.',
    todo: 'Der Kauf wurde storniert oder zurückgenommen. An der Kasse nachsehen lassen.',
  },
  device_unknown: {
    what: 'Dieses Gerät ist nicht angemeldet.',
    todo: 'Ein anderes Gerät benutzen und die Technik verständigen.',
  },
  device_revoked: { what: 'Dieses Gerät ist außer Dienst.', todo: 'Ein anderes Gerät benutzen.' },
  store_mismatch: { what: 'Das gehört zu einer anderen Filiale.', todo: 'Freigegeben wird nur, wo gekauft wurde.' },
  clock_untrusted: {
    what: 'Die Uhrzeit dieses Geräts ist nicht gesichert.',
    todo: 'Warten, bis die Verbindung wieder steht, oder von Hand lösen.',
  },
  policy_stale: {
    what: 'Die Zentrale war zu lange nicht erreichbar.',
    todo: 'Nur Personal darf jetzt freigeben. Bitte die Verbindung prüfen.',
  },
  device_not_capable: { what: 'Dieses Gerät kann das nicht.', todo: 'An einem anderen Gerät versuchen.' },
  technology_mismatch: {
    what: 'Dieses Etikett passt nicht zu diesem Gerät.',
    todo: 'An einem anderen Gerät versuchen.',
  },
  item_unknown: { what: 'Zu dieser Ware ist nichts bekannt.', todo: 'Den Beleg scannen und die Ware vergleichen.' },
  item_not_paid: { what: 'Diese Ware ist nicht bezahlt.', todo: 'Bitte zuerst an der Kasse bezahlen.' },
  already_redeemed: {
    what: 'Dafür ist nichts mehr freizugeben.',
    todo: 'Jedes Etikett wird nur einmal freigegeben. Im Zweifel Personal rufen.',
  },
  authorization_outstanding: {
    what: 'Ein anderes Gerät gibt das gerade frei.',
    todo: 'Kurz warten und noch einmal scannen.',
  },
  action_not_allowed: { what: 'Für diese Ware ist das nicht vorgesehen.', todo: 'An der Kasse nachfragen.' },
  workflow_not_allowed: {
    what: 'An diesem Platz ist das nicht erlaubt.',
    todo: 'Bitte zur Kasse oder zur Servicestation gehen.',
  },
  manual_assistance_required: {
    what: 'Hier muss das Personal freigeben.',
    todo: 'Ware und Beleg vergleichen, dann anmelden und freigeben.',
  },
  limit_exceeded: {
    what: 'Die Grenze für Freigaben ist erreicht.',
    todo: 'Warten, bis die Verbindung wieder steht, oder eine andere Person freigeben lassen.',
  },
}
