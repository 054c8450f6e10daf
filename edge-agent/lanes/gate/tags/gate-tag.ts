import type { TagName } from '../../../../device-drivers/drivers/device.ts'
import type { KnownItem } from '../../../items/item-table.ts'
import type { Replica } from '../../../items/replica.ts'

/** Name of a tag within a gate and in its storage: the EPC, or U and the UID. U is no hex digit. */
export function gateTagOf(tag: TagName): string {
  return 'epc' in tag ? tag.epc : `U${tag.tagUid}`
}

/** The reverse. */
export function tagNameOf(gateTag: string): TagName {
  return gateTag.startsWith('U') ? { tagUid: gateTag.slice(1) } : { epc: gateTag }
}

/** The item with this tag. */
export function itemOf(items: Pick<Replica, 'find'>, gateTag: string): KnownItem | undefined {
  return gateTag.startsWith('U') ? items.find('tagUid', gateTag.slice(1)) : items.find('epc', gateTag)
}
