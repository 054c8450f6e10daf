import type { Platform } from '../../../policy/platform.ts'
import { blankProgram, withSettings, type ProgramSettings } from '../../shop/loyalty/program-operations.ts'
import { saveProgram } from '../../shop/loyalty/queries.ts'
import type { ProgramType } from '../../shop/loyalty/schema.ts'
import type { Tenant } from '../../platform/foundation/caller.ts'
import type { Db } from '../../platform/persistence/database.ts'

/** The loyalty program of a test store. Names are invented. */
export interface SandboxProgram extends ProgramSettings {
  readonly name: string
  readonly type: ProgramType
}

interface ProgramSeed {
  tenant: Tenant
  storeId: string
  program: SandboxProgram
  platform: Platform
}

/** Creates the loyalty program of a test store. */
export async function seedLoyalty(db: Db, { tenant, storeId, program, platform }: ProgramSeed): Promise<void> {
  const { name, type } = program
  await saveProgram(
    db,
    withSettings(blankProgram({ tenant, storeId, package: 'PRIME', name, type }, platform), program, platform),
  )
}
