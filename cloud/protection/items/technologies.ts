import type { ProtectionEvent } from '../../../policy/protection-events.ts'
import type { ProtectionAction, ProtectionTechnology, TagTechnology } from '../../../policy/vocabulary.ts'
import { definedFields } from '../../platform/operations/fields.ts'
import type { Db } from '../../platform/persistence/database.ts'
import type { DeviceRow } from '../../platform/persistence/tables/agents.ts'
import type { ProtectedItemRow } from '../../platform/persistence/tables/protection.ts'
import type { StoreRow } from '../../platform/persistence/tables/stores.ts'
import { findItem } from './item-queries.ts'

/** Facts about the tag that a device acted on. */
export interface TagFacts extends Pick<ProtectionEvent, 'epc' | 'tagUid' | 'protectionAction'> {
  readonly item: Pick<ProtectedItemRow, 'protection_technology' | 'tag_technology'> | undefined
  readonly device: Pick<DeviceRow, 'technologies'> | undefined
  readonly store: Pick<StoreRow, 'protection_technology'> | null | undefined
}

/** Technologies of an event. A field is absent if the facts do not determine it. */
export type EventTechnologies = Pick<ProtectionEvent, 'protectionTechnology' | 'tagTechnology'>

/** Possible technologies of an action if no tag was read. An action without an entry works with all technologies. */
const WITHOUT_A_TAG: Partial<Record<ProtectionAction, readonly ProtectionTechnology[]>> = {
  deactivate_label: ['am', 'rf'],
  unlock_fixture: ['mechanical_lock'],
}

/**
 * Finds the technologies of the tag in an event. Uses the registered item, else the identifier that was read, else the
 * device's only technology for this action, else the store's technology.
 */
export function technologiesOf(facts: TagFacts): EventTechnologies {
  const { item, epc, tagUid } = facts
  const registered = item?.protection_technology as ProtectionTechnology | null | undefined
  const read = epc !== undefined ? 'uhf_rfid' : tagUid !== undefined ? 'hf_nfc' : undefined
  const tagTechnology = item?.tag_technology ?? (tagUid === undefined ? undefined : technologyOfUid(tagUid))
  return definedFields({
    protectionTechnology: registered ?? read ?? technologyOfDevice(facts) ?? null,
    tagTechnology: (tagTechnology ?? null) as TagTechnology | null,
  })
}

/** Parsed technologies of device rows: all events of a batch share the row. */
const parsedTechnologies = new WeakMap<object, readonly ProtectionTechnology[]>()

function supportedBy(device: Pick<DeviceRow, 'technologies'>): readonly ProtectionTechnology[] {
  const known = parsedTechnologies.get(device)
  if (known) return known
  const parsed = JSON.parse(device.technologies) as ProtectionTechnology[]
  parsedTechnologies.set(device, parsed)
  return parsed
}

function technologyOfDevice({ device, store, protectionAction: action }: TagFacts): ProtectionTechnology | undefined {
  if (!device || action === undefined) return undefined
  const possible = supportedBy(device).filter((each) => WITHOUT_A_TAG[action]?.includes(each) ?? true)
  return possible.length === 1 ? possible[0] : possible.find((each) => each === store?.protection_technology)
}

/**
 * Technology that follows from the form of a UID. ISO 15693 UIDs have 8 bytes and begin with E0 (ISO 15693-3 §4.1).
 * UIDs of 7 and 10 bytes exist only in ISO 14443 type A (ISO 14443-3 §6.5.4). UIDs of 4 bytes may be type A or B.
 */
export function technologyOfUid(tagUid: string): TagTechnology | undefined {
  if (/^E0[0-9A-F]{14}$/.test(tagUid)) return 'NfcV'
  return tagUid.length === 14 || tagUid.length === 20 ? 'NfcA' : undefined
}

/** The item that an event names by its tag, if registered. */
export async function itemOfEvent(
  db: Db,
  tenant: string,
  { epc, tagUid, tagId }: Pick<ProtectionEvent, 'epc' | 'tagUid' | 'tagId'>,
): Promise<ProtectedItemRow | undefined> {
  if (epc !== undefined) return findItem(db, tenant, { epc })
  if (tagUid !== undefined) return findItem(db, tenant, { tagUid })
  return tagId === undefined ? undefined : findItem(db, tenant, { tagId })
}
