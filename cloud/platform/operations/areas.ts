/** Groups of operations in the description of the API. */
export const AREAS = [
  'accounts',
  'users',
  'stores',
  'catalogue',
  'offers',
  'click and collect',
  'loyalty',
  'scan and go',
  'receipts',
  'protection',
  'agents',
  'webhooks',
  'payments',
  'integrations',
  'analytics',
  'assistance',
  'customers',
] as const
export type Area = (typeof AREAS)[number]
