import type { Language } from '../../../policy/page-language.ts'
import { formats, type Formats } from './texts.ts'
import { accountTexts, passkeysTexts } from './account.ts'
import { agentsTexts } from './agents.ts'
import { auditOperationTexts } from './audit-operations.ts'
import { alarmFiguresTexts } from './alarm-figures.ts'
import { alarmsTexts } from './alarms.ts'
import { approvalsTexts } from './approvals.ts'
import { closingsTexts } from './closings.ts'
import { decisionsTexts } from './decisions.ts'
import { developersTexts } from './developers.ts'
import { errorTexts } from './errors.ts'
import { exceptionSteps, exceptionTitles, exceptionsTexts } from './exceptions.ts'
import { frameTexts } from './frame.ts'
import { helpTexts } from './help.ts'
import { integrationsTexts } from './integrations.ts'
import { offersTexts } from './offers.ts'
import { loyaltyTexts } from './loyalty.ts'
import { operatorsTexts } from './operators.ts'
import { ordersTexts } from './orders.ts'
import { productImportTexts } from './product-import.ts'
import { productsTexts } from './products.ts'
import { recallsTexts } from './recalls.ts'
import { rulesTexts } from './rules.ts'
import { accountsTexts, registrationsTexts } from './platform.ts'
import { purchasesTexts } from './purchases.ts'
import { signInTexts } from './sign-in.ts'
import { storesTexts } from './stores.ts'
import { stockTexts } from './stock.ts'
import { healthTexts } from './health.ts'
import { tagsTexts } from './tags.ts'
import { todayTexts } from './today.ts'

/** Texts by part of the console. Each page adds its own file here. */
const PARTS = {
  frame: frameTexts,
  errors: errorTexts,
  signIn: signInTexts,
  account: accountTexts,
  passkeys: passkeysTexts,
  today: todayTexts,
  approvals: approvalsTexts,
  help: helpTexts,
  exceptions: exceptionsTexts,
  exceptionTitles,
  exceptionSteps,
  orders: ordersTexts,
  stock: stockTexts,
  tags: tagsTexts,
  recalls: recallsTexts,
  rules: rulesTexts,
  decisions: decisionsTexts,
  alarmFigures: alarmFiguresTexts,
  purchases: purchasesTexts,
  operators: operatorsTexts,
  closings: closingsTexts,
  agents: agentsTexts,
  health: healthTexts,
  alarms: alarmsTexts,
  products: productsTexts,
  productImport: productImportTexts,
  offers: offersTexts,
  loyalty: loyaltyTexts,
  developers: developersTexts,
  auditOperations: auditOperationTexts,
  stores: storesTexts,
  registrations: registrationsTexts,
  accounts: accountsTexts,
  integrations: integrationsTexts,
}

type Parts = typeof PARTS

/** All texts of the console in one language. */
export type ConsoleTexts = { readonly [K in keyof Parts]: Parts[K]['en'] }

function inLanguage(language: Language): ConsoleTexts {
  return Object.fromEntries(Object.entries(PARTS).map(([part, both]) => [part, both[language]])) as ConsoleTexts
}

const TEXTS: Readonly<Record<Language, ConsoleTexts>> = { en: inLanguage('en'), de: inLanguage('de') }
const FORMATS: Readonly<Record<Language, Formats>> = { en: formats('en-GB'), de: formats('de-DE') }

/** The texts of a language. */
export function consoleTexts(language: Language): ConsoleTexts {
  return TEXTS[language]
}

/** The formats of a language. */
export function consoleFormats(language: Language): Formats {
  return FORMATS[language]
}
