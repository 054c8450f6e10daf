/** Time zone of all stores: pages, receipts and analytics show and count their days in it. */
export const STORE_TIME_ZONE = 'Europe/Berlin'
