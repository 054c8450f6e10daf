import { writeFileSync } from 'node:fs'
import { describeApi } from '../cloud/service/description/openapi.ts'
import { OPERATION_TABLE } from '../cloud/service/operation-table.ts'
import { DEFAULT_BASE_URL } from '../host/settings/tools.ts'

/** Last step of the build. Writes the OpenAPI document, which `untag api` reads instead of loading the cloud. */
writeFileSync(
  new URL('../openapi.json', import.meta.url),
  JSON.stringify(describeApi(OPERATION_TABLE, DEFAULT_BASE_URL).openApi),
)
