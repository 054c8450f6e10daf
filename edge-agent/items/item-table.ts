import { ITEM_STATUSES, type ItemStatus, type ProtectionTechnology } from '../../policy/vocabulary.ts'
import { ItemSlots, type PackedItem, type SlotKey } from './item-slots.ts'

/** Attributes that many items share. The agent stores each distinct combination once (item-labels.ts). */
export interface ItemLabel {
  /** Empty if the item has no category. */
  readonly category: string
  /** Empty if the item has no brand. */
  readonly brand: string
  /** Absent: unknown. */
  readonly technology?: ProtectionTechnology
}

/** Facts about an item for gates and decisions. Absent fields are unknown. */
export interface KnownItem extends Partial<ItemLabel> {
  readonly status: ItemStatus
  /** Price that was paid for the item; before a payment, the item's own price. */
  readonly priceCent?: number
  /** True if an unpaid checkout names the item. */
  readonly paying: boolean
}

/**
 * Table of items by name. EPCs of 96 bits are in slots of 18 bytes (item-slots.ts), and all other names in a Map. One
 * million EPCs need less than 40 MB. In a Map of strings, the EPCs would need five times as much.
 */
export interface ItemTable {
  get(name: string): PackedItem | undefined
  set(name: string, item: PackedItem): void
  delete(name: string): void
  clear(): void
  readonly size: number
  /** Memory that the slots use, without the Map, bytes. */
  readonly bytes: number
}

const PACKABLE = /^E[0-9A-F]{24}$/
const HIGHEST_PRICE = 2 ** 27 - 2
const LABEL_AT = 2 ** 32

/** Packs an item. Stores a price above 1.3 million EUR as 1.3 million EUR. */
export function packItem(
  item: { status: ItemStatus; priceCent?: number | undefined; paying: boolean },
  label: number,
): PackedItem {
  const price = item.priceCent === undefined ? 0 : Math.min(item.priceCent, HIGHEST_PRICE) + 1
  return { info: price * 32 + (item.paying ? 16 : 0) + ITEM_STATUSES.indexOf(item.status) + 1, label }
}

/** Unpacks an item; undefined if `packItem` cannot have produced `info`. */
export function unpackItem({ info }: PackedItem, label: ItemLabel | undefined): KnownItem | undefined {
  const status = ITEM_STATUSES[(info % 16) - 1]
  if (status === undefined) return undefined
  const price = Math.floor(info / 32)
  return {
    status,
    paying: info % 32 >= 16,
    ...(price > 0 && { priceCent: price - 1 }),
    ...label,
  }
}

/** Makes an empty table. The first letter of a name is its kind: E for an EPC, U for a tag UID, T for a tag id. */
export function itemTable(): ItemTable {
  const slots = new ItemSlots()
  /** Items whose name is no EPC of 96 bits: info and label, packed into one number. */
  const others = new Map<string, number>()
  return {
    get(name) {
      if (isPackable(name)) return slots.get(keyOf(name))
      const packed = others.get(name)
      return packed === undefined ? undefined : { info: packed % LABEL_AT, label: Math.floor(packed / LABEL_AT) }
    },
    set(name, item) {
      if (isPackable(name)) slots.set(keyOf(name), item)
      else others.set(name, item.info + item.label * LABEL_AT)
    },
    delete(name) {
      if (isPackable(name)) slots.delete(keyOf(name))
      else others.delete(name)
    },
    clear() {
      others.clear()
      slots.clear()
    },
    get size() {
      return slots.size + others.size
    },
    get bytes() {
      return slots.bytes
    },
  }
}

function isPackable(name: string): boolean {
  return name.length === 25 && PACKABLE.test(name)
}

function keyOf(name: string): SlotKey {
  return [uint32At(name, 1), uint32At(name, 9), uint32At(name, 17)]
}

function uint32At(name: string, at: number): number {
  return Number.parseInt(name.slice(at, at + 8), 16)
}
