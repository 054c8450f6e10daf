import { BASE } from './base.ts'
import { GATE } from './gate.ts'
import { STATION } from './station.ts'

/** The one style sheet of the pages; its hash is what lets it apply (headers.ts). */
export const STYLE = BASE + STATION + GATE
