import { BASE } from './base.ts'
import { GATE } from './gate.ts'
import { STATION } from './station.ts'

/** The style sheet of all pages. The content security policy contains the hash of the style sheet (headers.ts). */
export const STYLE = BASE + STATION + GATE
