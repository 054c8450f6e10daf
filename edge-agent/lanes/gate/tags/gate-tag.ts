import type { TagName } from '../../../../device-drivers/kit/device.ts'
import type { KnownItem } from '../../../items/item-table.ts'
import type { Replica } from '../../../items/replica.ts'

/** Name of a tag at a gate, in memory and in the item file: the EPC, or U and the UID. No EPC starts with U. */
export function gateTagOf(tag: TagName): string {
  return 'epc' in tag ? tag.epc : `U${tag.tagUid}`
}

/** Converts a name from `gateTagOf` into the tag. */
export function tagNameOf(gateTag: string): TagName {
  return gateTag.startsWith('U') ? { tagUid: gateTag.slice(1) } : { epc: gateTag }
}

/** The item with this tag. */
export function itemOf(items: Pick<Replica, 'find'>, gateTag: string): KnownItem | undefined {
  return gateTag.startsWith('U') ? items.find('tagUid', gateTag.slice(1)) : items.find('epc', gateTag)
}
