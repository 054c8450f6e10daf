import type { TagName } from '../../../../device-drivers/drivers/device.ts'
import type { KnownItem } from '../../../items/item-table.ts'
import type { Replica } from '../../../items/replica.ts'

/** How a gate names a tag within itself and in what it keeps: an EPC as it is, a UID behind a U, which is no hex digit. */
export function gateTagOf(tag: TagName): string {
  return 'epc' in tag ? tag.epc : `U${tag.tagUid}`
}

/** The reverse. */
export function tagNameOf(gateTag: string): TagName {
  return gateTag.startsWith('U') ? { tagUid: gateTag.slice(1) } : { epc: gateTag }
}

/** What is known of the item that wears the tag. */
export function itemOf(items: Pick<Replica, 'find'>, gateTag: string): KnownItem | undefined {
  return gateTag.startsWith('U') ? items.find('tagUid', gateTag.slice(1)) : items.find('epc', gateTag)
}
