import type { Texts } from './texts.ts'

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
  locker_mismatch: {
    what: 'Dieser Code öffnet diese Tür nicht.',
    todo: 'Bitte zum richtigen Fach gehen, oder an der Theke fragen.',
  },
  clock_untrusted: {
    what: 'Die Uhrzeit dieses Geräts ist nicht bestätigt.',
    todo: 'Das Personal kann an einer Station mit Personal freigeben. Bitte das Netzwerk prüfen.',
  },
  policy_stale: {
    what: 'Diese Filiale war zu lange offline.',
    todo: 'Das Personal kann an einer Station mit Personal freigeben. Bitte das Netzwerk prüfen.',
  },
  device_not_capable: { what: 'Dieses Gerät kann das nicht.', todo: 'An einem anderen Gerät versuchen.' },
  technology_mismatch: {
    what: 'Dieses Etikett passt nicht zu diesem Gerät.',
    todo: 'An einem anderen Gerät versuchen.',
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
    what: 'Auf diesem Beleg ist keine Ware mit Etikett.',
    todo: 'Es gibt nichts freizugeben. Hat eine Ware doch ein Etikett: bitte an der Servicestation fragen.',
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
