import type { ConsolePage } from '../frame/page.ts'
import { OPERATION_TABLE } from '../../service/operation-table.ts'
import { accountPage, accountsPage } from './accounts.tsx'
import { agentsPage } from './agents.tsx'
import { alarmFiguresPage } from './alarm-figures.tsx'
import { alarmPage } from './alarm.tsx'
import { alarmsPage } from './alarms.tsx'
import { approvalsPage } from './approvals.tsx'
import { closingsPage } from './closings.tsx'
import { devicePage } from './device.tsx'
import { customersPage } from './customers.tsx'
import { decisionsPage } from './decisions.tsx'
import { auditPage } from './audit.tsx'
import { exceptionsPage } from './exceptions.tsx'
import { helpPage } from './help.tsx'
import { integrationSetUpPage, integrationsPage } from './integrations.tsx'
import { keysPage } from './keys.tsx'
import { loyaltyPage, newProgramPage, programPage } from './loyalty.tsx'
import { newOfferPage, offerPage } from './offer.tsx'
import { offersPage } from './offers.tsx'
import { operationPages } from './operations.tsx'
import { operatorsPage } from './operators.tsx'
import { ordersPage } from './orders.tsx'
import { productPage } from './product.tsx'
import { productImportPage } from './product-import.tsx'
import { newProductPage, productsPage } from './products.tsx'
import { rulesPage } from './rules.tsx'
import { registrationsPage } from './registrations.tsx'
import { recallsPage } from './recalls.tsx'
import { purchasesPage } from './purchases.tsx'
import { stockPage } from './stock.tsx'
import { storePage, storesPage } from './stores.tsx'
import { tagsPage } from './tags.tsx'
import { profilePage } from './profile.tsx'
import { healthPage } from './health.tsx'
import { todayPage } from './today.tsx'
import { usersPage } from './users.tsx'
import { zonesPage } from './zones.tsx'
import { webhookPage, webhooksPage } from './webhooks.tsx'

/** Every page of the console, in the order of the navigation. */
export const pages: readonly ConsolePage[] = [
  todayPage,
  registrationsPage,
  accountsPage,
  accountPage,
  alarmsPage,
  alarmPage,
  approvalsPage,
  helpPage,
  zonesPage,
  exceptionsPage,
  ordersPage,
  purchasesPage,
  stockPage,
  tagsPage,
  operatorsPage,
  closingsPage,
  healthPage,
  agentsPage,
  devicePage,
  productsPage,
  newProductPage,
  productImportPage,
  productPage,
  offersPage,
  newOfferPage,
  offerPage,
  loyaltyPage,
  newProgramPage,
  programPage,
  recallsPage,
  rulesPage,
  decisionsPage,
  alarmFiguresPage,
  keysPage,
  webhooksPage,
  webhookPage,
  auditPage,
  ...operationPages(OPERATION_TABLE),
  storesPage,
  storePage,
  integrationsPage,
  integrationSetUpPage,
  customersPage,
  usersPage,
  profilePage,
]
