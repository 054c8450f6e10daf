import { ITEM_STATUSES, type ItemStatus, type ProtectionTechnology } from '../../policy/vocabulary.ts'
import { ItemSlots, type PackedItem, type SlotKey } from './item-slots.ts'

/** What many items have in common; each distinct set is stored once. */
export interface ItemLabel {
  /** Empty: the item has none. */
  readonly category: string
  /** Empty: the item has none. */
  readonly brand: string
  /** Absent: unknown. */
  readonly technology?: ProtectionTechnology
}

/** The facts about an item that gates and decisions use. An absent label is unknown. */
export interface KnownItem extends Partial<ItemLabel> {
  readonly status: ItemStatus
  /** The price that was paid for the item, else its own; absent: unknown. */
  readonly priceCent?: number
  /** Named in a checkout that was not paid yet. */
  readonly paying: boolean
}

/**
 *   EPC of 96 bits ─▶ a slot of 18 bytes (item-slots.ts)
 *   every other name ─▶ a Map
 *
 * Table of items by name. One million items need less than 40 MB; as strings in a Map they would need five times as much.
 */
export interface ItemTable {
  get(name: string): PackedItem | undefined
  set(name: string, item: PackedItem): void
  delete(name: string): void
  clear(): void
  readonly size: number
  /** Bytes of the slots, without the Map. */
  readonly bytes: number
}

const PACKABLE = /^E[0-9A-F]{24}$/
const HIGHEST_PRICE = 2 ** 27 - 2
const LABEL_AT = 2 ** 32

/** Packs an item. Prices above 1.3 million EUR are stored as that limit. */
export function packItem(
  item: { status: ItemStatus; priceCent?: number | undefined; paying: boolean },
  label: number,
): PackedItem {
  const price = item.priceCent === undefined ? 0 : Math.min(item.priceCent, HIGHEST_PRICE) + 1
  return { info: price * 32 + (item.paying ? 16 : 0) + ITEM_STATUSES.indexOf(item.status) + 1, label }
}

/** Unpacks an item; undefined if `packItem` cannot have produced the number. */
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

/** An empty table. Names begin with a letter for their kind: E for an EPC, U for a tag's UID, T for a tag id. */
export function itemTable(): ItemTable {
  const slots = new ItemSlots()
  /** Items whose names do not fit a slot: info and label, packed into one number. */
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
  return [word(name, 1), word(name, 9), word(name, 17)]
}

function word(name: string, at: number): number {
  return Number.parseInt(name.slice(at, at + 8), 16)
}
