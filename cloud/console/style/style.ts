import { BASE } from './base.ts'
import { COMPONENTS } from './components.ts'
import { LAYOUT } from './layout.ts'
import { TOKENS } from './tokens.ts'

/** The one stylesheet of the console. */
export const STYLE = [TOKENS, BASE, LAYOUT, COMPONENTS].join('\n')
