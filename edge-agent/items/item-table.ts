import { ITEM_STATUSES, type ItemStatus, type ProtectionTechnology } from '../../policy/vocabulary.ts'

/** What many items have in common; each distinct set is stored once. */
export interface ItemLabel {
  /** Empty: the item has none. */
  readonly category: string
  /** Empty: the item has none. */
  readonly brand: string
  /** Absent: unknown. */
  readonly technology?: ProtectionTechnology
}

/** What gates and decisions need to know of an item. A label that is absent is unknown. */
export interface KnownItem extends Partial<ItemLabel> {
  readonly status: ItemStatus
  /** The price that was paid for the item, else its own; absent: unknown. */
  readonly priceCent?: number
  /** Named in a checkout that was not paid yet. */
  readonly paying: boolean
}

/** An item packed into two numbers: as it lies in memory and on the disk. */
export interface PackedItem {
  /** Bits 0–3: number of the status, from 1; bit 4: being paid; the rest: price in cents + 1, 0 where unknown. Never 0. */
  readonly info: number
  /** Number of its label, from 1; 0: unknown. */
  readonly label: number
}

/**
 *   EPC of 96 bits ─▶ hash ─▶ slot: 3 words of key · info · label     (18 bytes; linear probing, at most ¾ full)
 *   every other name ─▶ a Map
 *
 * A million items in less than 40 MB: as strings in a Map they would take five times that.
 */
export interface ItemTable {
  get(name: string): PackedItem | undefined
  set(name: string, item: PackedItem): void
  delete(name: string): void
  clear(): void
  readonly size: number
  /** Bytes of the slots; the Map of other names not counted. */
  readonly bytes: number
}

const FIRST_SLOTS = 1_024
const PACKABLE = /^E[0-9A-F]{24}$/
const HIGHEST_PRICE = 2 ** 27 - 2
const LABEL_AT = 2 ** 32

/** Packs what is known of an item; prices above 1.3 million EUR are kept as that. */
export function packItem(
  item: { status: ItemStatus; priceCent?: number | undefined; paying: boolean },
  label: number,
): PackedItem {
  const price = item.priceCent === undefined ? 0 : Math.min(item.priceCent, HIGHEST_PRICE) + 1
  return { info: price * 32 + (item.paying ? 16 : 0) + ITEM_STATUSES.indexOf(item.status) + 1, label }
}

/** The reverse; undefined for numbers that `packItem` does not give. */
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
  let slots = FIRST_SLOTS
  let keys = new Uint32Array(slots * 3)
  let infos = new Uint32Array(slots)
  let labels = new Uint16Array(slots)
  let used = 0
  const others = new Map<string, number>()

  /** The slot of this key, or the empty one where it belongs. */
  function slotOf(a: number, b: number, c: number): number {
    let slot = hashOf(a, b, c) & (slots - 1)
    while (infos[slot] !== 0 && (keys[slot * 3] !== a || keys[slot * 3 + 1] !== b || keys[slot * 3 + 2] !== c))
      slot = (slot + 1) & (slots - 1)
    return slot
  }

  function put(slot: number, a: number, b: number, c: number, info: number, label: number): void {
    keys[slot * 3] = a
    keys[slot * 3 + 1] = b
    keys[slot * 3 + 2] = c
    infos[slot] = info
    labels[slot] = label
  }

  function resize(to: number): void {
    const [oldKeys, oldInfos, oldLabels] = [keys, infos, labels]
    slots = to
    keys = new Uint32Array(slots * 3)
    infos = new Uint32Array(slots)
    labels = new Uint16Array(slots)
    for (let i = 0; i < oldInfos.length; i++) {
      const info = oldInfos[i] ?? 0
      if (info === 0) continue
      const [a, b, c] = [oldKeys[i * 3] ?? 0, oldKeys[i * 3 + 1] ?? 0, oldKeys[i * 3 + 2] ?? 0]
      put(slotOf(a, b, c), a, b, c, info, oldLabels[i] ?? 0)
    }
  }

  /** Closes the hole: whatever stands behind it and belongs before it moves up. */
  function remove(hole: number): void {
    let at = hole
    for (let next = (hole + 1) & (slots - 1); infos[next] !== 0; next = (next + 1) & (slots - 1)) {
      const [a, b, c] = [keys[next * 3] ?? 0, keys[next * 3 + 1] ?? 0, keys[next * 3 + 2] ?? 0]
      const home = hashOf(a, b, c) & (slots - 1)
      if (((next - home) & (slots - 1)) < ((next - at) & (slots - 1))) continue
      put(at, a, b, c, infos[next] ?? 0, labels[next] ?? 0)
      at = next
    }
    infos[at] = 0
    used--
  }

  return {
    get(name) {
      if (!isPackable(name)) {
        const packed = others.get(name)
        return packed === undefined ? undefined : { info: packed % LABEL_AT, label: Math.floor(packed / LABEL_AT) }
      }
      const slot = slotOf(word(name, 1), word(name, 9), word(name, 17))
      const info = infos[slot] ?? 0
      return info === 0 ? undefined : { info, label: labels[slot] ?? 0 }
    },
    set(name, { info, label }) {
      if (!isPackable(name)) return void others.set(name, info + label * LABEL_AT)
      if (used >= slots * 0.75) resize(slots * 2)
      const [a, b, c] = [word(name, 1), word(name, 9), word(name, 17)]
      const slot = slotOf(a, b, c)
      if (infos[slot] === 0) used++
      put(slot, a, b, c, info, label)
    },
    delete(name) {
      if (!isPackable(name)) return void others.delete(name)
      const slot = slotOf(word(name, 1), word(name, 9), word(name, 17))
      if (infos[slot] !== 0) remove(slot)
    },
    clear() {
      others.clear()
      used = 0
      resize(FIRST_SLOTS)
      infos.fill(0)
    },
    get size() {
      return used + others.size
    },
    get bytes() {
      return slots * 18
    },
  }
}

function isPackable(name: string): boolean {
  return name.length === 25 && PACKABLE.test(name)
}

function word(name: string, at: number): number {
  return Number.parseInt(name.slice(at, at + 8), 16)
}

/** Serial numbers follow one another, so every bit of the key must move every bit of the hash (the finish of MurmurHash3). */
function hashOf(a: number, b: number, c: number): number {
  let h = Math.imul(a, 0xcc9e2d51) ^ Math.imul(b, 0x1b873593) ^ Math.imul(c, 0x85ebca6b)
  h ^= h >>> 16
  h = Math.imul(h, 0x85ebca6b)
  h ^= h >>> 13
  h = Math.imul(h, 0xc2b2ae35)
  return (h ^ (h >>> 16)) >>> 0
}
