# Written by npm run generate from docs/reference/openapi.json. Do not edit.
"""Types and methods of all operations."""
from typing import Any, Dict, List, Literal, Mapping, NotRequired, Optional, TypedDict, Union, cast

AcceptInvitationRequest = TypedDict(
    "AcceptInvitationRequest",
    {
        "token": str,
        "name": str,
        "password": str,
        "device": NotRequired[str],
    },
)

AcceptInvitationResponse = TypedDict(
    "AcceptInvitationResponse",
    {
        "success": Literal[True],
        "sessionToken": str,
        "state": Literal["active", "pending"],
        "userId": str,
        "role": Literal["owner", "admin", "manager", "associate", "viewer", "platform"],
        "mode": Literal["test", "live"],
        "expiresAt": str,
    },
)

AcknowledgeExceptionRequest = TypedDict(
    "AcknowledgeExceptionRequest",
    {
        "exceptionId": str,
        "note": NotRequired[str],
    },
)

AcknowledgeExceptionResponseEmergency = TypedDict(
    "AcknowledgeExceptionResponseEmergency",
    {
        "startedAt": str,
        "endedAt": NotRequired[str],
    },
)

AcknowledgeExceptionResponse = TypedDict(
    "AcknowledgeExceptionResponse",
    {
        "exceptionId": str,
        "storeId": str,
        "kind": str,
        "subject": str,
        "state": Literal["open", "acknowledged"],
        "detail": str,
        "deviceId": NotRequired[str],
        "deviceName": NotRequired[str],
        "agentId": NotRequired[str],
        "agentName": NotRequired[str],
        "purchaseId": NotRequired[str],
        "eventId": NotRequired[str],
        "raisedAt": str,
        "lastRaisedAt": str,
        "times": int,
        "emergency": NotRequired["AcknowledgeExceptionResponseEmergency"],
        "acknowledgedAt": NotRequired[str],
        "acknowledgedBy": NotRequired[str],
        "acknowledgedByName": NotRequired[str],
        "note": NotRequired[str],
        "success": Literal[True],
    },
)

AddLoyaltyPointsRequest = TypedDict(
    "AddLoyaltyPointsRequest",
    {
        "programId": str,
        "userId": NotRequired[str],
        "cardCode": NotRequired[str],
        "amount": NotRequired[float],
        "purchaseId": NotRequired[str],
        "source": NotRequired[Literal["qr_checkin", "store_checkin", "scan_and_go", "click_collect", "till", "manual"]],
        "transactionId": NotRequired[str],
    },
)

AddLoyaltyPointsResponse = TypedDict(
    "AddLoyaltyPointsResponse",
    {
        "success": Literal[True],
        "programId": str,
        "userId": str,
        "amount": float,
        "newBalance": float,
        "tier": str,
        "transactionId": str,
    },
)

AgentLoginRequest = TypedDict(
    "AgentLoginRequest",
    {
        "agentId": str,
        "assertion": NotRequired[str],
        "release": NotRequired[str],
    },
)

AgentLoginResponseLedger = TypedDict(
    "AgentLoginResponseLedger",
    {
        "generation": int,
        "denySeq": int,
        "onlineOnlyUntil": NotRequired[str],
        "forked": NotRequired[Literal[True]],
    },
)

AgentLoginResponse = TypedDict(
    "AgentLoginResponse",
    {
        "success": Literal[True],
        "challenge": NotRequired[str],
        "accessToken": NotRequired[str],
        "expiresAt": NotRequired[str],
        "mqttChallenge": NotRequired[str],
        "revoked": NotRequired[str],
        "storeKey": NotRequired[str],
        "ledger": NotRequired["AgentLoginResponseLedger"],
    },
)

AnswerAssistanceRequestRequest = TypedDict(
    "AnswerAssistanceRequestRequest",
    {
        "requestId": str,
        "message": NotRequired[str],
        "status": NotRequired[Literal["open", "answered", "closed"]],
    },
)

AnswerAssistanceRequestResponseMessagesItem = TypedDict(
    "AnswerAssistanceRequestResponseMessagesItem",
    {
        "author": Literal["shopper", "staff"],
        "text": str,
        "at": str,
    },
)

AnswerAssistanceRequestResponse = TypedDict(
    "AnswerAssistanceRequestResponse",
    {
        "requestId": str,
        "storeId": str,
        "reason": Literal["shopper", "manual_assistance_required", "exception_hold", "alarm"],
        "status": Literal["open", "answered", "closed"],
        "zoneId": NotRequired[str],
        "zoneName": NotRequired[str],
        "userId": NotRequired[str],
        "deviceId": NotRequired[str],
        "deviceName": NotRequired[str],
        "eventId": NotRequired[str],
        "requestedByName": NotRequired[str],
        "purchaseId": NotRequired[str],
        "tag": NotRequired[str],
        "products": NotRequired[List[str]],
        "createdAt": str,
        "updatedAt": str,
        "messages": List["AnswerAssistanceRequestResponseMessagesItem"],
        "success": Literal[True],
    },
)

ApproveCheckoutRequest = TypedDict(
    "ApproveCheckoutRequest",
    {
        "transactionId": NotRequired[str],
        "purchaseId": NotRequired[str],
        "id": NotRequired[str],
        "operatorId": NotRequired[str],
        "approved": NotRequired[bool],
    },
)

ApproveCheckoutResponseItemsItem = TypedDict(
    "ApproveCheckoutResponseItemsItem",
    {
        "itemLineId": str,
        "productId": NotRequired[str],
        "name": str,
        "price": float,
        "paid": float,
        "listPrice": NotRequired[float],
        "quantity": int,
        "cameBack": NotRequired[int],
        "depositOf": NotRequired[str],
        "weightGrams": NotRequired[int],
        "priceOrigin": NotRequired[Literal["catalogue", "item", "client"]],
        "priceReason": NotRequired[Literal["staff", "markdown", "coupon", "till"]],
    },
)

ApproveCheckoutResponseRefundsItemLinesItem = TypedDict(
    "ApproveCheckoutResponseRefundsItemLinesItem",
    {
        "itemLineId": str,
        "quantity": int,
        "part": NotRequired[float],
    },
)

ApproveCheckoutResponseRefundsItem = TypedDict(
    "ApproveCheckoutResponseRefundsItem",
    {
        "refundId": str,
        "kind": Literal["whole", "part", "late"],
        "status": Literal["pending", "done", "failed"],
        "inDoubt": NotRequired[Literal[True]],
        "outside": NotRequired[Literal["refund", "dispute"]],
        "lines": NotRequired[List["ApproveCheckoutResponseRefundsItemLinesItem"]],
        "amount": float,
        "requestedBy": NotRequired[str],
        "requestedByName": NotRequired[str],
        "createdAt": str,
        "completedAt": NotRequired[str],
    },
)

ApproveCheckoutResponse = TypedDict(
    "ApproveCheckoutResponse",
    {
        "transactionId": str,
        "storeId": str,
        "items": List["ApproveCheckoutResponseItemsItem"],
        "total": float,
        "refunded": float,
        "refunds": List["ApproveCheckoutResponseRefundsItem"],
        "currency": str,
        "timestamp": str,
        "status": Literal["CREATED", "PENDING_PAYMENT", "SUCCESS", "UNLOADED", "CANCELLED"],
        "refundStatus": NotRequired[Literal["pending", "done", "failed"]],
        "awaitingApproval": NotRequired[bool],
        "approvalReason": NotRequired[Literal["age", "spot_check"]],
        "securityTagMode": NotRequired[Literal["none", "manual", "station", "rfid"]],
        "securityTagStatus": NotRequired[Literal["pending", "deactivated"]],
        "securityTagHint": NotRequired[str],
        "receipt": "TransactionData",
        "success": Literal[True],
    },
)

ApproveStoreRegistrationRequest = TypedDict(
    "ApproveStoreRegistrationRequest",
    {
        "registrationId": str,
        "package": NotRequired[str],
    },
)

ApproveStoreRegistrationResponseAddress = TypedDict(
    "ApproveStoreRegistrationResponseAddress",
    {
        "street": str,
        "city": str,
        "zip": str,
        "country": str,
    },
)

ApproveStoreRegistrationResponseCoordinates = TypedDict(
    "ApproveStoreRegistrationResponseCoordinates",
    {
        "lat": float,
        "lng": float,
    },
)

ApproveStoreRegistrationResponse = TypedDict(
    "ApproveStoreRegistrationResponse",
    {
        "storeId": str,
        "companyName": str,
        "tradingName": str,
        "address": "ApproveStoreRegistrationResponseAddress",
        "coordinates": NotRequired["ApproveStoreRegistrationResponseCoordinates"],
        "hasScanAndGo": bool,
        "package": Literal["DISCOVER", "ASSIST", "GO", "GROW", "PRIME"],
        "securityTagMode": Literal["none", "manual", "station", "rfid"],
        "securityTagHint": NotRequired[str],
        "protectionTechnology": NotRequired[Literal["am", "rf", "uhf_rfid", "hf_nfc", "mechanical_lock"]],
        "deviceType": NotRequired[Literal["pos_deactivator", "self_checkout_detacher", "exit_gate", "handheld_reader", "cabinet_unlocker"]],
        "workflowType": NotRequired[Literal["staff_assisted", "self_service", "automatic_exit", "pos_integrated"]],
        "gln": NotRequired[str],
        "inStoreCodes": NotRequired[List[str]],
        "success": Literal[True],
    },
)

BeginOpenIdSignInRequest = TypedDict(
    "BeginOpenIdSignInRequest",
    {
        "again": NotRequired[bool],
    },
)

BeginOpenIdSignInResponse = TypedDict(
    "BeginOpenIdSignInResponse",
    {
        "success": Literal[True],
        "url": str,
        "flow": str,
        "expiresAt": str,
    },
)

BeginPasskeyRequest = TypedDict(
    "BeginPasskeyRequest",
    {
    },
)

BeginPasskeyResponseOptionsRp = TypedDict(
    "BeginPasskeyResponseOptionsRp",
    {
        "id": str,
        "name": str,
    },
)

BeginPasskeyResponseOptionsUser = TypedDict(
    "BeginPasskeyResponseOptionsUser",
    {
        "id": str,
        "name": str,
        "displayName": str,
    },
)

BeginPasskeyResponseOptionsPubKeyCredParamsItem = TypedDict(
    "BeginPasskeyResponseOptionsPubKeyCredParamsItem",
    {
        "type": Literal["public-key"],
        "alg": int,
    },
)

BeginPasskeyResponseOptionsAuthenticatorSelection = TypedDict(
    "BeginPasskeyResponseOptionsAuthenticatorSelection",
    {
        "residentKey": Literal["required"],
        "requireResidentKey": Literal[True],
        "userVerification": Literal["required"],
    },
)

BeginPasskeyResponseOptionsExcludeCredentialsItem = TypedDict(
    "BeginPasskeyResponseOptionsExcludeCredentialsItem",
    {
        "id": str,
        "type": Literal["public-key"],
        "transports": List[str],
    },
)

BeginPasskeyResponseOptions = TypedDict(
    "BeginPasskeyResponseOptions",
    {
        "challenge": str,
        "rp": "BeginPasskeyResponseOptionsRp",
        "user": "BeginPasskeyResponseOptionsUser",
        "pubKeyCredParams": List["BeginPasskeyResponseOptionsPubKeyCredParamsItem"],
        "timeout": int,
        "attestation": Literal["none"],
        "authenticatorSelection": "BeginPasskeyResponseOptionsAuthenticatorSelection",
        "excludeCredentials": List["BeginPasskeyResponseOptionsExcludeCredentialsItem"],
    },
)

BeginPasskeyResponse = TypedDict(
    "BeginPasskeyResponse",
    {
        "success": Literal[True],
        "options": "BeginPasskeyResponseOptions",
    },
)

BeginPasskeySignInRequest = TypedDict(
    "BeginPasskeySignInRequest",
    {
    },
)

BeginPasskeySignInResponseOptions = TypedDict(
    "BeginPasskeySignInResponseOptions",
    {
        "challenge": str,
        "rpId": str,
        "timeout": int,
        "userVerification": Literal["required"],
    },
)

BeginPasskeySignInResponse = TypedDict(
    "BeginPasskeySignInResponse",
    {
        "success": Literal[True],
        "options": "BeginPasskeySignInResponseOptions",
    },
)

BeginSecondFactorRequest = TypedDict(
    "BeginSecondFactorRequest",
    {
    },
)

BeginSecondFactorResponse = TypedDict(
    "BeginSecondFactorResponse",
    {
        "success": Literal[True],
        "secret": str,
        "uri": str,
    },
)

BulkImportProductsRequestProductsItemNutrition = TypedDict(
    "BulkImportProductsRequestProductsItemNutrition",
    {
        "calories": NotRequired[float],
        "fat": NotRequired[float],
        "saturatedFat": NotRequired[float],
        "carbohydrates": NotRequired[float],
        "sugar": NotRequired[float],
        "protein": NotRequired[float],
        "fiber": NotRequired[float],
        "salt": NotRequired[float],
        "nutriScore": NotRequired[Literal["A", "B", "C", "D", "E"]],
        "per": NotRequired[Literal["100g", "100ml"]],
        "source": NotRequired[Literal["merchant", "reference", "community"]],
        "confidence": NotRequired[float],
    },
)

BulkImportProductsRequestProductsItemFlags = TypedDict(
    "BulkImportProductsRequestProductsItemFlags",
    {
        "requiresHumanVerification": bool,
    },
)

BulkImportProductsRequestProductsItem = TypedDict(
    "BulkImportProductsRequestProductsItem",
    {
        "ean": NotRequired[str],
        "barcode": NotRequired[str],
        "name": str,
        "price": float,
        "vat": Literal[7, 19],
        "oldPrice": NotRequired[float],
        "category": NotRequired[str],
        "unit": NotRequired[str],
        "brand": NotRequired[str],
        "description": NotRequired[str],
        "imageUrl": NotRequired[str],
        "weight": NotRequired[str],
        "isOrganic": NotRequired[bool],
        "isVegan": NotRequired[bool],
        "allergens": NotRequired[List[str]],
        "deposit": NotRequired[float],
        "depositVat": NotRequired[Literal[7, 19]],
        "nutrition": NotRequired["BulkImportProductsRequestProductsItemNutrition"],
        "tagged": NotRequired[bool],
        "flags": NotRequired["BulkImportProductsRequestProductsItemFlags"],
    },
)

BulkImportProductsRequest = TypedDict(
    "BulkImportProductsRequest",
    {
        "storeId": str,
        "products": List["BulkImportProductsRequestProductsItem"],
    },
)

BulkImportProductsResponseErrorsItem = TypedDict(
    "BulkImportProductsResponseErrorsItem",
    {
        "index": int,
        "row": NotRequired[int],
        "ean": str,
        "field": str,
        "code": str,
        "message": str,
    },
)

BulkImportProductsResponse = TypedDict(
    "BulkImportProductsResponse",
    {
        "success": Literal[True],
        "imported": int,
        "updated": int,
        "errors": List["BulkImportProductsResponseErrorsItem"],
        "errorCount": int,
        "warnings": NotRequired[List[str]],
    },
)

CallHelpToAlarmRequest = TypedDict(
    "CallHelpToAlarmRequest",
    {
        "eventId": str,
    },
)

CallHelpToAlarmResponseMessagesItem = TypedDict(
    "CallHelpToAlarmResponseMessagesItem",
    {
        "author": Literal["shopper", "staff"],
        "text": str,
        "at": str,
    },
)

CallHelpToAlarmResponse = TypedDict(
    "CallHelpToAlarmResponse",
    {
        "requestId": str,
        "storeId": str,
        "reason": Literal["shopper", "manual_assistance_required", "exception_hold", "alarm"],
        "status": Literal["open", "answered", "closed"],
        "zoneId": NotRequired[str],
        "zoneName": NotRequired[str],
        "userId": NotRequired[str],
        "deviceId": NotRequired[str],
        "deviceName": NotRequired[str],
        "eventId": NotRequired[str],
        "requestedByName": NotRequired[str],
        "purchaseId": NotRequired[str],
        "tag": NotRequired[str],
        "products": NotRequired[List[str]],
        "createdAt": str,
        "updatedAt": str,
        "messages": List["CallHelpToAlarmResponseMessagesItem"],
        "success": Literal[True],
    },
)

ChangePasswordRequest = TypedDict(
    "ChangePasswordRequest",
    {
        "password": str,
        "newPassword": str,
    },
)

ChangePasswordResponse = TypedDict(
    "ChangePasswordResponse",
    {
        "success": Literal[True],
        "endedSessions": int,
    },
)

CheckInRequest = TypedDict(
    "CheckInRequest",
    {
        "storeId": str,
        "userId": NotRequired[str],
    },
)

CheckInResponse = TypedDict(
    "CheckInResponse",
    {
        "success": Literal[True],
        "sessionId": str,
        "storeId": str,
        "checkedInAt": str,
    },
)

CheckoutLine = TypedDict(
    "CheckoutLine",
    {
        "name": NotRequired[str],
        "priceUnit": NotRequired[int],
        "priceReason": NotRequired[Literal["staff", "markdown", "coupon", "till"]],
        "quantity": int,
        "vat": NotRequired[Literal[7, 19]],
        "ean": NotRequired[str],
        "productId": NotRequired[str],
        "tagIds": NotRequired[List[str]],
        "epcs": NotRequired[List[str]],
        "tagUids": NotRequired[List[str]],
        "serialNumber": NotRequired[str],
        "lot": NotRequired[str],
        "expiry": NotRequired[str],
        "serial": NotRequired[str],
    },
)

ClaimRegistrationRequest = TypedDict(
    "ClaimRegistrationRequest",
    {
        "registrationId": str,
        "claimSecret": str,
    },
)

ClaimRegistrationResponseKeysItem = TypedDict(
    "ClaimRegistrationResponseKeysItem",
    {
        "keyId": str,
        "key": str,
        "kind": Literal["secret", "publishable", "admin"],
        "mode": Literal["test", "live"],
        "name": str,
    },
)

ClaimRegistrationResponse = TypedDict(
    "ClaimRegistrationResponse",
    {
        "success": Literal[True],
        "registrationId": str,
        "status": Literal["approved"],
        "accountId": str,
        "keys": List["ClaimRegistrationResponseKeysItem"],
    },
)

CloneOfferRequestPriceAdjustmentsValue1 = TypedDict(
    "CloneOfferRequestPriceAdjustmentsValue1",
    {
        "type": Literal["percentage"],
        "value": float,
    },
)

CloneOfferRequestPriceAdjustmentsValue2 = TypedDict(
    "CloneOfferRequestPriceAdjustmentsValue2",
    {
        "type": Literal["fixed"],
        "value": float,
    },
)

CloneOfferRequest = TypedDict(
    "CloneOfferRequest",
    {
        "offerId": NotRequired[str],
        "id": NotRequired[str],
        "targetStoreIds": List[str],
        "priceAdjustments": NotRequired[Dict[str, Union["CloneOfferRequestPriceAdjustmentsValue1", "CloneOfferRequestPriceAdjustmentsValue2"]]],
    },
)

CloneOfferResponse = TypedDict(
    "CloneOfferResponse",
    {
        "groupId": str,
        "storeCount": int,
        "scope": Literal["LOCAL", "MULTI_STORE", "CITY_WIDE", "REGIONAL", "NATIONAL"],
        "status": Literal["DRAFT", "ACTIVE", "EXPIRED", "ARCHIVED"],
        "discountPercent": int,
        "createdAt": str,
        "_sandbox": NotRequired[Literal[True]],
        "success": Literal[True],
        "clonedOfferId": str,
        "clonedOfferIds": List[str],
    },
)

CloseStoreDayRequest = TypedDict(
    "CloseStoreDayRequest",
    {
        "storeId": str,
        "date": NotRequired[str],
    },
)

CloseStoreDayResponseVatBreakdownValue = TypedDict(
    "CloseStoreDayResponseVatBreakdownValue",
    {
        "net": int,
        "tax": int,
    },
)

CloseStoreDayResponseTillsVatBreakdownValue = TypedDict(
    "CloseStoreDayResponseTillsVatBreakdownValue",
    {
        "net": int,
        "tax": int,
    },
)

CloseStoreDayResponseTills = TypedDict(
    "CloseStoreDayResponseTills",
    {
        "receiptCount": int,
        "salesCent": int,
        "refundCount": int,
        "refundCent": int,
        "totalCent": int,
        "vatBreakdown": Dict[str, "CloseStoreDayResponseTillsVatBreakdownValue"],
    },
)

CloseStoreDayResponse = TypedDict(
    "CloseStoreDayResponse",
    {
        "storeId": str,
        "number": int,
        "from": str,
        "date": str,
        "closedAt": str,
        "currency": Literal["EUR"],
        "receiptCount": int,
        "salesCent": int,
        "refundCount": int,
        "refundCent": int,
        "totalCent": int,
        "vatBreakdown": Dict[str, "CloseStoreDayResponseVatBreakdownValue"],
        "tills": "CloseStoreDayResponseTills",
        "success": Literal[True],
    },
)

CompleteTestCheckoutRequest = TypedDict(
    "CompleteTestCheckoutRequest",
    {
        "transactionId": NotRequired[str],
        "purchaseId": NotRequired[str],
        "id": NotRequired[str],
        "result": NotRequired[Literal["paid", "declined", "cancelled"]],
    },
)

CompleteTestCheckoutResponseItemsItem = TypedDict(
    "CompleteTestCheckoutResponseItemsItem",
    {
        "itemLineId": str,
        "productId": NotRequired[str],
        "name": str,
        "price": float,
        "paid": float,
        "listPrice": NotRequired[float],
        "quantity": int,
        "cameBack": NotRequired[int],
        "depositOf": NotRequired[str],
        "weightGrams": NotRequired[int],
        "priceOrigin": NotRequired[Literal["catalogue", "item", "client"]],
        "priceReason": NotRequired[Literal["staff", "markdown", "coupon", "till"]],
    },
)

CompleteTestCheckoutResponseRefundsItemLinesItem = TypedDict(
    "CompleteTestCheckoutResponseRefundsItemLinesItem",
    {
        "itemLineId": str,
        "quantity": int,
        "part": NotRequired[float],
    },
)

CompleteTestCheckoutResponseRefundsItem = TypedDict(
    "CompleteTestCheckoutResponseRefundsItem",
    {
        "refundId": str,
        "kind": Literal["whole", "part", "late"],
        "status": Literal["pending", "done", "failed"],
        "inDoubt": NotRequired[Literal[True]],
        "outside": NotRequired[Literal["refund", "dispute"]],
        "lines": NotRequired[List["CompleteTestCheckoutResponseRefundsItemLinesItem"]],
        "amount": float,
        "requestedBy": NotRequired[str],
        "requestedByName": NotRequired[str],
        "createdAt": str,
        "completedAt": NotRequired[str],
    },
)

CompleteTestCheckoutResponse = TypedDict(
    "CompleteTestCheckoutResponse",
    {
        "transactionId": str,
        "storeId": str,
        "items": List["CompleteTestCheckoutResponseItemsItem"],
        "total": float,
        "refunded": float,
        "refunds": List["CompleteTestCheckoutResponseRefundsItem"],
        "currency": str,
        "timestamp": str,
        "status": Literal["CREATED", "PENDING_PAYMENT", "SUCCESS", "UNLOADED", "CANCELLED"],
        "refundStatus": NotRequired[Literal["pending", "done", "failed"]],
        "awaitingApproval": NotRequired[bool],
        "approvalReason": NotRequired[Literal["age", "spot_check"]],
        "securityTagMode": NotRequired[Literal["none", "manual", "station", "rfid"]],
        "securityTagStatus": NotRequired[Literal["pending", "deactivated"]],
        "securityTagHint": NotRequired[str],
        "receipt": "TransactionData",
        "success": Literal[True],
    },
)

ConfigurePSPRequest = TypedDict(
    "ConfigurePSPRequest",
    {
        "provider": Literal["stripe", "adyen", "mollie", "paypal", "klarna", "sumup", "worldline", "custom"],
        "storeId": str,
        "config": Dict[str, str],
    },
)

ConfigurePSPResponse = TypedDict(
    "ConfigurePSPResponse",
    {
        "success": Literal[True],
        "storeId": str,
        "provider": str,
        "notificationUrl": str,
        "configuredAt": str,
    },
)

ConfirmSecondFactorRequest = TypedDict(
    "ConfirmSecondFactorRequest",
    {
        "code": str,
    },
)

ConfirmSecondFactorResponse = TypedDict(
    "ConfirmSecondFactorResponse",
    {
        "success": Literal[True],
        "recoveryCodes": List[str],
    },
)

ConfirmSignInRequest = TypedDict(
    "ConfirmSignInRequest",
    {
        "sessionToken": str,
        "code": str,
        "device": NotRequired[str],
    },
)

ConfirmSignInResponse = TypedDict(
    "ConfirmSignInResponse",
    {
        "success": Literal[True],
        "sessionToken": str,
        "state": Literal["active", "pending"],
        "userId": str,
        "role": Literal["owner", "admin", "manager", "associate", "viewer", "platform"],
        "mode": Literal["test", "live"],
        "expiresAt": str,
    },
)

CreateApiKeyRequest = TypedDict(
    "CreateApiKeyRequest",
    {
        "kind": Literal["secret", "publishable"],
        "name": str,
        "storeIds": NotRequired[List[str]],
        "expiresAt": NotRequired[str],
    },
)

CreateApiKeyResponse = TypedDict(
    "CreateApiKeyResponse",
    {
        "success": Literal[True],
        "keyId": str,
        "key": str,
    },
)

CreateEnrolmentCodeRequest = TypedDict(
    "CreateEnrolmentCodeRequest",
    {
        "storeId": str,
        "name": NotRequired[str],
    },
)

CreateEnrolmentCodeResponse = TypedDict(
    "CreateEnrolmentCodeResponse",
    {
        "success": Literal[True],
        "code": str,
        "expiresAt": str,
    },
)

CreateLoyaltyProgramRequestRewardsItem = TypedDict(
    "CreateLoyaltyProgramRequestRewardsItem",
    {
        "rewardId": NotRequired[str],
        "name": str,
        "cost": float,
    },
)

CreateLoyaltyProgramRequestTiersItem = TypedDict(
    "CreateLoyaltyProgramRequestTiersItem",
    {
        "name": str,
        "threshold": float,
    },
)

CreateLoyaltyProgramRequest = TypedDict(
    "CreateLoyaltyProgramRequest",
    {
        "storeId": str,
        "name": str,
        "type": Literal["stamps", "points", "cashback", "tier"],
        "earningMethods": NotRequired[List[Literal["qr_checkin", "store_checkin", "scan_and_go", "click_collect", "till"]]],
        "rewards": NotRequired[List["CreateLoyaltyProgramRequestRewardsItem"]],
        "tiers": NotRequired[List["CreateLoyaltyProgramRequestTiersItem"]],
        "pointsPerEuro": NotRequired[float],
        "stampsPerVisit": NotRequired[int],
        "cashbackPercent": NotRequired[float],
        "pointsValidMonths": NotRequired[int],
        "isActive": NotRequired[bool],
    },
)

CreateLoyaltyProgramResponseRewardsItem = TypedDict(
    "CreateLoyaltyProgramResponseRewardsItem",
    {
        "rewardId": str,
        "name": str,
        "cost": float,
    },
)

CreateLoyaltyProgramResponseTiersItem = TypedDict(
    "CreateLoyaltyProgramResponseTiersItem",
    {
        "name": str,
        "threshold": float,
    },
)

CreateLoyaltyProgramResponse = TypedDict(
    "CreateLoyaltyProgramResponse",
    {
        "programId": str,
        "storeId": str,
        "name": str,
        "type": Literal["stamps", "points", "cashback", "tier"],
        "earningMethods": List[Literal["qr_checkin", "store_checkin", "scan_and_go", "click_collect", "till"]],
        "rewards": List["CreateLoyaltyProgramResponseRewardsItem"],
        "tiers": List["CreateLoyaltyProgramResponseTiersItem"],
        "pointsPerEuro": float,
        "stampsPerVisit": int,
        "cashbackPercent": float,
        "pointsValidMonths": int,
        "isActive": bool,
        "checkInCode": str,
        "createdAt": str,
        "updatedAt": str,
        "success": Literal[True],
    },
)

CreateOfferRequestProductsItem = TypedDict(
    "CreateOfferRequestProductsItem",
    {
        "name": NotRequired[str],
        "price": NotRequired[float],
        "oldPrice": NotRequired[float],
        "discountPercentage": NotRequired[float],
        "category": NotRequired[str],
        "manufacturer": NotRequired[str],
        "unit": NotRequired[str],
        "description": NotRequired[str],
        "ean": NotRequired[str],
        "discountPrice": NotRequired[float],
        "originalPrice": NotRequired[float],
    },
)

CreateOfferRequest = TypedDict(
    "CreateOfferRequest",
    {
        "storeIds": List[str],
        "title": str,
        "validFrom": str,
        "validTo": NotRequired[str],
        "validUntil": NotRequired[str],
        "products": List["CreateOfferRequestProductsItem"],
        "description": NotRequired[str],
        "merchantColor": NotRequired[str],
        "tags": NotRequired[List[str]],
        "imageUrl": NotRequired[str],
        "quantity": NotRequired[int],
    },
)

CreateOfferResponse = TypedDict(
    "CreateOfferResponse",
    {
        "groupId": str,
        "storeCount": int,
        "scope": Literal["LOCAL", "MULTI_STORE", "CITY_WIDE", "REGIONAL", "NATIONAL"],
        "status": Literal["DRAFT", "ACTIVE", "EXPIRED", "ARCHIVED"],
        "discountPercent": int,
        "createdAt": str,
        "_sandbox": NotRequired[Literal[True]],
        "success": Literal[True],
        "offerId": str,
        "offerIds": List[str],
    },
)

CreateSetupCodeRequest = TypedDict(
    "CreateSetupCodeRequest",
    {
        "storeId": str,
    },
)

CreateSetupCodeResponse = TypedDict(
    "CreateSetupCodeResponse",
    {
        "success": Literal[True],
        "code": str,
        "expiresAt": str,
    },
)

CreateZoneRequest = TypedDict(
    "CreateZoneRequest",
    {
        "storeId": str,
        "name": str,
    },
)

CreateZoneResponse = TypedDict(
    "CreateZoneResponse",
    {
        "success": Literal[True],
        "zoneId": str,
        "url": str,
        "imageBase64": str,
    },
)

DecommissionDeviceRequest = TypedDict(
    "DecommissionDeviceRequest",
    {
        "deviceId": str,
    },
)

DecommissionDeviceResponse = TypedDict(
    "DecommissionDeviceResponse",
    {
        "deviceId": str,
        "deviceType": Literal["pos_deactivator", "self_checkout_detacher", "exit_gate", "handheld_reader", "cabinet_unlocker"],
        "storeId": str,
        "name": NotRequired[str],
        "zoneId": NotRequired[str],
        "laneId": NotRequired[str],
        "gateId": NotRequired[str],
        "tillId": NotRequired[str],
        "agentId": NotRequired[str],
        "movingToAgentId": NotRequired[str],
        "firmwareVersion": NotRequired[str],
        "canDeactivateLabel": bool,
        "canDetachHardTag": bool,
        "canReadReceiptQr": bool,
        "canReadUhfRfid": bool,
        "canReadHfNfc": bool,
        "canUnlockFixture": bool,
        "supportsOfflineAuth": bool,
        "supportedTechnologies": List[Literal["am", "rf", "uhf_rfid", "hf_nfc", "mechanical_lock"]],
        "workflowType": Literal["staff_assisted", "self_service", "automatic_exit", "pos_integrated"],
        "registeredAt": str,
        "lastSeenAt": str,
        "decommissionedAt": NotRequired[str],
        "success": Literal[True],
    },
)

DeleteOfferRequest = TypedDict(
    "DeleteOfferRequest",
    {
        "offerId": NotRequired[str],
        "id": NotRequired[str],
    },
)

DeleteOfferResponse = TypedDict(
    "DeleteOfferResponse",
    {
        "success": Literal[True],
        "_sandbox": NotRequired[Literal[True]],
        "offerId": str,
        "deletedCount": int,
    },
)

DeleteWebhookRequest = TypedDict(
    "DeleteWebhookRequest",
    {
        "webhookId": str,
    },
)

DeleteWebhookResponse = TypedDict(
    "DeleteWebhookResponse",
    {
        "success": Literal[True],
        "webhookId": str,
    },
)

Device = TypedDict(
    "Device",
    {
        "deviceId": str,
        "deviceType": Literal["pos_deactivator", "self_checkout_detacher", "exit_gate", "handheld_reader", "cabinet_unlocker"],
        "storeId": str,
        "name": NotRequired[str],
        "zoneId": NotRequired[str],
        "laneId": NotRequired[str],
        "gateId": NotRequired[str],
        "tillId": NotRequired[str],
        "agentId": NotRequired[str],
        "movingToAgentId": NotRequired[str],
        "firmwareVersion": NotRequired[str],
        "canDeactivateLabel": bool,
        "canDetachHardTag": bool,
        "canReadReceiptQr": bool,
        "canReadUhfRfid": bool,
        "canReadHfNfc": bool,
        "canUnlockFixture": bool,
        "supportsOfflineAuth": bool,
        "supportedTechnologies": List[Literal["am", "rf", "uhf_rfid", "hf_nfc", "mechanical_lock"]],
        "workflowType": Literal["staff_assisted", "self_service", "automatic_exit", "pos_integrated"],
        "registeredAt": str,
        "lastSeenAt": str,
        "decommissionedAt": NotRequired[str],
    },
)

DisposeAlarmRequest = TypedDict(
    "DisposeAlarmRequest",
    {
        "eventId": str,
        "disposition": Literal["real", "unintentional", "tag_left_on", "staff_error", "phantom"],
        "operatorId": NotRequired[str],
        "recoveredValue": NotRequired[float],
        "seen": NotRequired[Union[Literal["none"], str]],
    },
)

DisposeAlarmResponse = TypedDict(
    "DisposeAlarmResponse",
    {
        "eventId": str,
        "storeId": str,
        "deviceId": NotRequired[str],
        "reason": str,
        "epc": NotRequired[str],
        "itemStatus": NotRequired[Literal["sellable", "paid", "reserved_bopis", "picked_up", "returned", "transfer_in_transit", "cancelled", "exception_hold"]],
        "occurredAt": str,
        "disposition": Literal["real", "unintentional", "tag_left_on", "staff_error", "phantom"],
        "operatorId": str,
        "recoveredValue": NotRequired[float],
        "disposedAt": str,
        "success": Literal[True],
    },
)

DisposeAlarmsRequest = TypedDict(
    "DisposeAlarmsRequest",
    {
        "storeId": str,
        "deviceId": NotRequired[str],
        "since": NotRequired[str],
        "raisedFrom": NotRequired[str],
        "raisedUntil": NotRequired[str],
        "until": str,
        "disposition": Literal["real", "unintentional", "tag_left_on", "staff_error", "phantom"],
        "operatorId": NotRequired[str],
    },
)

DisposeAlarmsResponse = TypedDict(
    "DisposeAlarmsResponse",
    {
        "success": Literal[True],
        "disposed": int,
        "left": int,
    },
)

EndRecallRequest = TypedDict(
    "EndRecallRequest",
    {
        "recallId": str,
    },
)

EndRecallResponse = TypedDict(
    "EndRecallResponse",
    {
        "recallId": str,
        "state": Literal["active", "ended"],
        "storeIds": NotRequired[List[str]],
        "ean": str,
        "name": str,
        "lot": NotRequired[str],
        "expiry": NotRequired[str],
        "serial": NotRequired[str],
        "reason": str,
        "startedAt": str,
        "endedAt": NotRequired[str],
        "items": NotRequired[int],
        "soldItems": NotRequired[int],
        "success": Literal[True],
    },
)

EndSessionsRequest = TypedDict(
    "EndSessionsRequest",
    {
        "sessionId": NotRequired[str],
    },
)

EndSessionsResponse = TypedDict(
    "EndSessionsResponse",
    {
        "success": Literal[True],
        "ended": int,
    },
)

EnrolEdgeAgentRequestPublicJwk = TypedDict(
    "EnrolEdgeAgentRequestPublicJwk",
    {
        "kty": Literal["OKP"],
        "crv": Literal["Ed25519"],
        "x": str,
    },
)

EnrolEdgeAgentRequestReplaces = TypedDict(
    "EnrolEdgeAgentRequestReplaces",
    {
        "agentId": str,
        "proof": str,
    },
)

EnrolEdgeAgentRequestPredecessorsItem = TypedDict(
    "EnrolEdgeAgentRequestPredecessorsItem",
    {
        "agentId": str,
        "proof": str,
    },
)

EnrolEdgeAgentRequest = TypedDict(
    "EnrolEdgeAgentRequest",
    {
        "code": str,
        "publicJwk": "EnrolEdgeAgentRequestPublicJwk",
        "proof": str,
        "name": NotRequired[str],
        "replaces": NotRequired["EnrolEdgeAgentRequestReplaces"],
        "predecessors": NotRequired[List["EnrolEdgeAgentRequestPredecessorsItem"]],
    },
)

EnrolEdgeAgentResponseRoot = TypedDict(
    "EnrolEdgeAgentResponseRoot",
    {
        "kty": Literal["OKP"],
        "crv": Literal["Ed25519"],
        "x": str,
    },
)

EnrolEdgeAgentResponseMqtt = TypedDict(
    "EnrolEdgeAgentResponseMqtt",
    {
        "url": str,
        "clientId": str,
        "username": str,
        "password": NotRequired[str],
    },
)

EnrolEdgeAgentResponse = TypedDict(
    "EnrolEdgeAgentResponse",
    {
        "success": Literal[True],
        "agentId": str,
        "storeId": str,
        "root": "EnrolEdgeAgentResponseRoot",
        "documents": List[str],
        "mqtt": "EnrolEdgeAgentResponseMqtt",
    },
)

EraseCustomerDataRequest = TypedDict(
    "EraseCustomerDataRequest",
    {
        "userId": str,
    },
)

EraseCustomerDataResponse = TypedDict(
    "EraseCustomerDataResponse",
    {
        "success": Literal[True],
        "erased": Literal[True],
        "records": Dict[str, int],
    },
)

ErrorDetailsItem = TypedDict(
    "ErrorDetailsItem",
    {
        "path": str,
        "code": str,
        "message": str,
    },
)

Error = TypedDict(
    "Error",
    {
        "error": str,
        "code": str,
        "reason": NotRequired[str],
        "requiredUpgrade": NotRequired[str],
        "currentPackage": NotRequired[str],
        "details": NotRequired[List["ErrorDetailsItem"]],
        "allowedNext": NotRequired[List[str]],
        "retryAt": NotRequired[str],
        "accounts": NotRequired[List[str]],
        "flow": NotRequired[str],
        "requestId": str,
    },
)

ExportCustomerDataRequest = TypedDict(
    "ExportCustomerDataRequest",
    {
        "userId": str,
    },
)

ExportCustomerDataResponse = TypedDict(
    "ExportCustomerDataResponse",
    {
        "success": Literal[True],
        "userId": str,
        "records": Dict[str, List[Dict[str, Any]]],
    },
)

ExportEpcisEventsRequest = TypedDict(
    "ExportEpcisEventsRequest",
    {
        "storeId": str,
        "type": NotRequired[Literal["checkout.completed", "item.status_changed", "protection.authorization.requested", "protection.authorization.granted", "protection.authorization.denied", "protection.action.completed", "protection.action.failed", "protection.device.offline", "protection.exception.raised"]],
        "deviceId": NotRequired[str],
        "purchaseId": NotRequired[str],
        "since": NotRequired[str],
        "limit": NotRequired[int],
        "cursor": NotRequired[str],
        "format": NotRequired[Literal["json", "json-ld", "ndjson"]],
    },
)

ExportEpcisEventsResponseEpcisBodyEventListItemQuantityListItem = TypedDict(
    "ExportEpcisEventsResponseEpcisBodyEventListItemQuantityListItem",
    {
        "epcClass": str,
        "quantity": float,
        "uom": NotRequired[str],
    },
)

ExportEpcisEventsResponseEpcisBodyEventListItemReadPoint = TypedDict(
    "ExportEpcisEventsResponseEpcisBodyEventListItemReadPoint",
    {
        "id": str,
    },
)

ExportEpcisEventsResponseEpcisBodyEventListItemBizLocation = TypedDict(
    "ExportEpcisEventsResponseEpcisBodyEventListItemBizLocation",
    {
        "id": str,
    },
)

ExportEpcisEventsResponseEpcisBodyEventListItemBizTransactionListItem = TypedDict(
    "ExportEpcisEventsResponseEpcisBodyEventListItemBizTransactionListItem",
    {
        "type": str,
        "bizTransaction": str,
    },
)

ExportEpcisEventsResponseEpcisBodyEventListItemSensorElementListItemSensorReportItem = TypedDict(
    "ExportEpcisEventsResponseEpcisBodyEventListItemSensorElementListItemSensorReportItem",
    {
        "type": str,
        "exception": NotRequired[Literal["ALARM_CONDITION", "ERROR_CONDITION"]],
        "deviceID": NotRequired[str],
        "stringValue": NotRequired[str],
    },
)

ExportEpcisEventsResponseEpcisBodyEventListItemSensorElementListItem = TypedDict(
    "ExportEpcisEventsResponseEpcisBodyEventListItemSensorElementListItem",
    {
        "sensorReport": List["ExportEpcisEventsResponseEpcisBodyEventListItemSensorElementListItemSensorReportItem"],
    },
)

ExportEpcisEventsResponseEpcisBodyEventListItem = TypedDict(
    "ExportEpcisEventsResponseEpcisBodyEventListItem",
    {
        "type": Literal["ObjectEvent"],
        "eventID": str,
        "eventTime": str,
        "eventTimeZoneOffset": str,
        "recordTime": NotRequired[str],
        "epcList": NotRequired[List[str]],
        "quantityList": NotRequired[List["ExportEpcisEventsResponseEpcisBodyEventListItemQuantityListItem"]],
        "action": Literal["ADD", "OBSERVE", "DELETE"],
        "bizStep": NotRequired[str],
        "disposition": NotRequired[str],
        "readPoint": NotRequired["ExportEpcisEventsResponseEpcisBodyEventListItemReadPoint"],
        "bizLocation": NotRequired["ExportEpcisEventsResponseEpcisBodyEventListItemBizLocation"],
        "bizTransactionList": NotRequired[List["ExportEpcisEventsResponseEpcisBodyEventListItemBizTransactionListItem"]],
        "sensorElementList": NotRequired[List["ExportEpcisEventsResponseEpcisBodyEventListItemSensorElementListItem"]],
        "untag:eventId": NotRequired[str],
        "untag:protectionAction": NotRequired[str],
        "untag:workflowType": NotRequired[str],
        "untag:itemStatus": NotRequired[str],
        "untag:reason": NotRequired[str],
    },
)

ExportEpcisEventsResponseEpcisBody = TypedDict(
    "ExportEpcisEventsResponseEpcisBody",
    {
        "eventList": List["ExportEpcisEventsResponseEpcisBodyEventListItem"],
    },
)

ExportEpcisEventsResponse = TypedDict(
    "ExportEpcisEventsResponse",
    {
        "success": Literal[True],
        "@context": List[Any],
        "type": Literal["EPCISDocument"],
        "schemaVersion": Literal["2.0"],
        "creationDate": str,
        "epcisBody": "ExportEpcisEventsResponseEpcisBody",
        "untag:nextCursor": NotRequired[str],
    },
)

ExportSalesDataRequest = TypedDict(
    "ExportSalesDataRequest",
    {
        "from": str,
        "to": str,
        "storeId": NotRequired[str],
        "format": NotRequired[Literal["json", "csv"]],
    },
)

ExportSalesDataResponseSalesItemRefundsItemLinesItem = TypedDict(
    "ExportSalesDataResponseSalesItemRefundsItemLinesItem",
    {
        "itemLineId": str,
        "quantity": int,
        "part": NotRequired[float],
    },
)

ExportSalesDataResponseSalesItemRefundsItem = TypedDict(
    "ExportSalesDataResponseSalesItemRefundsItem",
    {
        "refundId": str,
        "kind": Literal["whole", "part", "late"],
        "status": Literal["pending", "done", "failed"],
        "inDoubt": NotRequired[Literal[True]],
        "outside": NotRequired[Literal["refund", "dispute"]],
        "lines": NotRequired[List["ExportSalesDataResponseSalesItemRefundsItemLinesItem"]],
        "amountCent": int,
        "createdAt": str,
        "completedAt": NotRequired[str],
    },
)

ExportSalesDataResponseSalesItemVatBreakdownValue = TypedDict(
    "ExportSalesDataResponseSalesItemVatBreakdownValue",
    {
        "net": int,
        "tax": int,
    },
)

ExportSalesDataResponseSalesItemItemsItem = TypedDict(
    "ExportSalesDataResponseSalesItemItemsItem",
    {
        "itemLineId": str,
        "ean": NotRequired[str],
        "name": str,
        "quantity": int,
        "vat": int,
        "priceUnit": int,
        "listPriceUnit": NotRequired[int],
        "priceReason": NotRequired[Literal["staff", "markdown", "coupon", "till"]],
        "totalCent": int,
        "refundedCent": int,
        "depositOf": NotRequired[str],
    },
)

ExportSalesDataResponseSalesItem = TypedDict(
    "ExportSalesDataResponseSalesItem",
    {
        "transactionId": str,
        "storeId": str,
        "completedAt": str,
        "status": Literal["SUCCESS", "UNLOADED", "CANCELLED"],
        "currency": str,
        "totalCent": int,
        "refundedCent": int,
        "refunds": List["ExportSalesDataResponseSalesItemRefundsItem"],
        "vatBreakdown": Dict[str, "ExportSalesDataResponseSalesItemVatBreakdownValue"],
        "items": List["ExportSalesDataResponseSalesItemItemsItem"],
    },
)

ExportSalesDataResponse = TypedDict(
    "ExportSalesDataResponse",
    {
        "success": Literal[True],
        "from": str,
        "to": str,
        "sales": List["ExportSalesDataResponseSalesItem"],
        "count": int,
    },
)

FetchAccountRequest = TypedDict(
    "FetchAccountRequest",
    {
        "accountId": str,
    },
)

FetchAccountResponseLimitsLiveStores = TypedDict(
    "FetchAccountResponseLimitsLiveStores",
    {
        "used": int,
        "limit": int,
    },
)

FetchAccountResponseLimitsTestStores = TypedDict(
    "FetchAccountResponseLimitsTestStores",
    {
        "used": int,
        "limit": int,
    },
)

FetchAccountResponseLimitsUsers = TypedDict(
    "FetchAccountResponseLimitsUsers",
    {
        "used": int,
        "limit": int,
    },
)

FetchAccountResponseLimitsLiveKeys = TypedDict(
    "FetchAccountResponseLimitsLiveKeys",
    {
        "used": int,
        "limit": int,
    },
)

FetchAccountResponseLimitsTestKeys = TypedDict(
    "FetchAccountResponseLimitsTestKeys",
    {
        "used": int,
        "limit": int,
    },
)

FetchAccountResponseLimitsPendingRegistrations = TypedDict(
    "FetchAccountResponseLimitsPendingRegistrations",
    {
        "used": int,
        "limit": int,
    },
)

FetchAccountResponseLimits = TypedDict(
    "FetchAccountResponseLimits",
    {
        "liveStores": "FetchAccountResponseLimitsLiveStores",
        "testStores": "FetchAccountResponseLimitsTestStores",
        "users": "FetchAccountResponseLimitsUsers",
        "liveKeys": "FetchAccountResponseLimitsLiveKeys",
        "testKeys": "FetchAccountResponseLimitsTestKeys",
        "pendingRegistrations": "FetchAccountResponseLimitsPendingRegistrations",
    },
)

FetchAccountResponse = TypedDict(
    "FetchAccountResponse",
    {
        "accountId": str,
        "name": str,
        "package": Literal["DISCOVER", "ASSIST", "GO", "GROW", "PRIME"],
        "stores": int,
        "agents": int,
        "devices": int,
        "users": int,
        "createdAt": str,
        "lastActiveAt": NotRequired[str],
        "success": Literal[True],
        "limits": "FetchAccountResponseLimits",
    },
)

FetchAccountSettingsRequest = TypedDict(
    "FetchAccountSettingsRequest",
    {
    },
)

FetchAccountSettingsResponse = TypedDict(
    "FetchAccountSettingsResponse",
    {
        "success": Literal[True],
        "acceptUpc": bool,
    },
)

FetchAccountStoresRequest = TypedDict(
    "FetchAccountStoresRequest",
    {
        "accountId": str,
        "limit": NotRequired[int],
        "cursor": NotRequired[str],
    },
)

FetchAccountStoresResponseStoresItem = TypedDict(
    "FetchAccountStoresResponseStoresItem",
    {
        "storeId": str,
        "tradingName": str,
        "companyName": str,
        "city": str,
        "mode": Literal["test", "live"],
        "package": Literal["DISCOVER", "ASSIST", "GO", "GROW", "PRIME"],
        "agents": int,
        "devices": int,
        "createdAt": str,
        "lastSeenAt": NotRequired[str],
    },
)

FetchAccountStoresResponse = TypedDict(
    "FetchAccountStoresResponse",
    {
        "success": Literal[True],
        "stores": List["FetchAccountStoresResponseStoresItem"],
        "nextCursor": NotRequired[str],
    },
)

FetchAccountsRequest = TypedDict(
    "FetchAccountsRequest",
    {
        "search": NotRequired[str],
        "package": NotRequired[str],
        "limit": NotRequired[int],
        "cursor": NotRequired[str],
    },
)

FetchAccountsResponseAccountsItem = TypedDict(
    "FetchAccountsResponseAccountsItem",
    {
        "accountId": str,
        "name": str,
        "package": Literal["DISCOVER", "ASSIST", "GO", "GROW", "PRIME"],
        "stores": int,
        "agents": int,
        "devices": int,
        "users": int,
        "createdAt": str,
        "lastActiveAt": NotRequired[str],
    },
)

FetchAccountsResponse = TypedDict(
    "FetchAccountsResponse",
    {
        "success": Literal[True],
        "accounts": List["FetchAccountsResponseAccountsItem"],
        "nextCursor": NotRequired[str],
    },
)

FetchActiveOffersRequest = TypedDict(
    "FetchActiveOffersRequest",
    {
        "storeId": str,
        "limit": NotRequired[int],
        "cursor": NotRequired[str],
    },
)

FetchActiveOffersResponseOffersItemProductsItemPricesItem = TypedDict(
    "FetchActiveOffersResponseOffersItemProductsItemPricesItem",
    {
        "storeId": str,
        "originalPrice": NotRequired[float],
        "discountPrice": float,
    },
)

FetchActiveOffersResponseOffersItemProductsItem = TypedDict(
    "FetchActiveOffersResponseOffersItemProductsItem",
    {
        "ean": NotRequired[str],
        "name": str,
        "category": NotRequired[str],
        "manufacturer": NotRequired[str],
        "unit": NotRequired[str],
        "description": NotRequired[str],
        "originalPrice": NotRequired[float],
        "discountPrice": float,
        "prices": List["FetchActiveOffersResponseOffersItemProductsItemPricesItem"],
    },
)

FetchActiveOffersResponseOffersItem = TypedDict(
    "FetchActiveOffersResponseOffersItem",
    {
        "id": str,
        "groupId": str,
        "title": str,
        "description": str,
        "storeIds": List[str],
        "validFrom": str,
        "validTo": str,
        "merchantColor": str,
        "tags": List[str],
        "imageUrl": NotRequired[str],
        "quantity": NotRequired[int],
        "productCount": int,
        "isActive": bool,
        "status": Literal["DRAFT", "ACTIVE", "EXPIRED", "ARCHIVED"],
        "discountPercent": int,
        "scope": Literal["LOCAL", "MULTI_STORE", "CITY_WIDE", "REGIONAL", "NATIONAL"],
        "storeCount": int,
        "clickCount": int,
        "favoritedCount": int,
        "createdAt": str,
        "products": List["FetchActiveOffersResponseOffersItemProductsItem"],
    },
)

FetchActiveOffersResponse = TypedDict(
    "FetchActiveOffersResponse",
    {
        "success": Literal[True],
        "_sandbox": NotRequired[Literal[True]],
        "offers": List["FetchActiveOffersResponseOffersItem"],
        "total": int,
        "nextCursor": NotRequired[str],
    },
)

FetchAgentConditionsRequest = TypedDict(
    "FetchAgentConditionsRequest",
    {
        "storeId": NotRequired[str],
    },
)

FetchAgentConditionsResponseConditionsItem = TypedDict(
    "FetchAgentConditionsResponseConditionsItem",
    {
        "condition": Literal["forked", "offline", "behind", "fault", "never", "ok"],
        "agents": int,
    },
)

FetchAgentConditionsResponse = TypedDict(
    "FetchAgentConditionsResponse",
    {
        "success": Literal[True],
        "total": int,
        "conditions": List["FetchAgentConditionsResponseConditionsItem"],
    },
)

FetchAgentsRequest = TypedDict(
    "FetchAgentsRequest",
    {
        "storeId": NotRequired[str],
        "state": NotRequired[Literal["active", "forked", "revoked"]],
        "online": NotRequired[bool],
        "condition": NotRequired[Literal["forked", "offline", "behind", "fault", "never", "ok"]],
        "limit": NotRequired[int],
        "cursor": NotRequired[str],
    },
)

FetchAgentsResponseAgentsItemFaultsDevicesItem = TypedDict(
    "FetchAgentsResponseAgentsItemFaultsDevicesItem",
    {
        "deviceId": str,
        "name": NotRequired[str],
        "fault": Literal["degraded", "absent"],
    },
)

FetchAgentsResponseAgentsItemFaults = TypedDict(
    "FetchAgentsResponseAgentsItemFaults",
    {
        "total": int,
        "devices": List["FetchAgentsResponseAgentsItemFaultsDevicesItem"],
    },
)

FetchAgentsResponseAgentsItem = TypedDict(
    "FetchAgentsResponseAgentsItem",
    {
        "agentId": str,
        "storeId": str,
        "name": str,
        "state": Literal["active", "forked", "revoked"],
        "online": NotRequired[bool],
        "enrolledAt": str,
        "lastSeenAt": str,
        "stateAt": NotRequired[str],
        "release": NotRequired[str],
        "neededRelease": NotRequired[str],
        "policyVersion": NotRequired[int],
        "isPolicyCurrent": NotRequired[bool],
        "currentPolicyVersion": int,
        "faults": NotRequired["FetchAgentsResponseAgentsItemFaults"],
        "queueDepth": NotRequired[int],
        "denyVersion": int,
        "itemsVersion": int,
        "generation": int,
        "ledgerSeq": int,
        "revokedAt": NotRequired[str],
    },
)

FetchAgentsResponse = TypedDict(
    "FetchAgentsResponse",
    {
        "success": Literal[True],
        "agents": List["FetchAgentsResponseAgentsItem"],
        "total": int,
        "nextCursor": NotRequired[str],
    },
)

FetchAlarmNoticesRequest = TypedDict(
    "FetchAlarmNoticesRequest",
    {
    },
)

FetchAlarmNoticesResponse = TypedDict(
    "FetchAlarmNoticesResponse",
    {
        "success": Literal[True],
        "isOn": bool,
        "publicKey": str,
    },
)

FetchAlarmsRequest = TypedDict(
    "FetchAlarmsRequest",
    {
        "storeId": NotRequired[str],
        "eventId": NotRequired[str],
        "purchaseId": NotRequired[str],
        "state": NotRequired[Literal["open", "acknowledged", "disposed"]],
        "disposition": NotRequired[Literal["real", "unintentional", "tag_left_on", "staff_error", "phantom"]],
        "deviceId": NotRequired[str],
        "raisedFrom": NotRequired[str],
        "raisedUntil": NotRequired[str],
        "since": NotRequired[str],
        "until": NotRequired[str],
        "limit": NotRequired[int],
        "cursor": NotRequired[str],
    },
)

FetchAlarmsResponseAlarmsItemProduct = TypedDict(
    "FetchAlarmsResponseAlarmsItemProduct",
    {
        "productId": str,
        "name": str,
        "brand": NotRequired[str],
        "category": NotRequired[str],
        "price": float,
        "imageUrl": NotRequired[str],
    },
)

FetchAlarmsResponseAlarmsItemGoods = TypedDict(
    "FetchAlarmsResponseAlarmsItemGoods",
    {
        "brand": NotRequired[str],
        "category": NotRequired[str],
        "price": NotRequired[float],
    },
)

FetchAlarmsResponseAlarmsItemReceipt = TypedDict(
    "FetchAlarmsResponseAlarmsItemReceipt",
    {
        "match": Literal["item", "product"],
        "purchaseId": str,
        "paidAt": str,
    },
)

FetchAlarmsResponseAlarmsItemEarlierItem = TypedDict(
    "FetchAlarmsResponseAlarmsItemEarlierItem",
    {
        "disposition": Literal["real", "unintentional", "tag_left_on", "staff_error", "phantom"],
        "operatorId": str,
        "recoveredValue": NotRequired[float],
        "disposedAt": str,
        "name": NotRequired[str],
    },
)

FetchAlarmsResponseAlarmsItem = TypedDict(
    "FetchAlarmsResponseAlarmsItem",
    {
        "eventId": str,
        "storeId": str,
        "state": Literal["open", "acknowledged", "disposed"],
        "exceptionId": NotRequired[str],
        "times": NotRequired[int],
        "reason": str,
        "detail": NotRequired[str],
        "deviceId": NotRequired[str],
        "gate": NotRequired[str],
        "epc": NotRequired[str],
        "tagUid": NotRequired[str],
        "tagId": NotRequired[str],
        "itemStatus": NotRequired[Literal["sellable", "paid", "reserved_bopis", "picked_up", "returned", "transfer_in_transit", "cancelled", "exception_hold"]],
        "emergency": NotRequired[bool],
        "occurredAt": str,
        "product": NotRequired["FetchAlarmsResponseAlarmsItemProduct"],
        "goods": NotRequired["FetchAlarmsResponseAlarmsItemGoods"],
        "receipt": NotRequired["FetchAlarmsResponseAlarmsItemReceipt"],
        "acknowledgedAt": NotRequired[str],
        "acknowledgedBy": NotRequired[str],
        "acknowledgedByName": NotRequired[str],
        "helpRequestId": NotRequired[str],
        "handledByName": NotRequired[str],
        "disposition": NotRequired[Literal["real", "unintentional", "tag_left_on", "staff_error", "phantom"]],
        "operatorId": NotRequired[str],
        "recoveredValue": NotRequired[float],
        "disposedAt": NotRequired[str],
        "earlier": NotRequired[List["FetchAlarmsResponseAlarmsItemEarlierItem"]],
    },
)

FetchAlarmsResponse = TypedDict(
    "FetchAlarmsResponse",
    {
        "success": Literal[True],
        "alarms": List["FetchAlarmsResponseAlarmsItem"],
        "total": int,
        "nextCursor": NotRequired[str],
    },
)

FetchAnalyticsRequest = TypedDict(
    "FetchAnalyticsRequest",
    {
        "storeId": str,
        "from": str,
        "to": str,
        "period": NotRequired[Literal["daily", "weekly", "monthly"]],
    },
)

FetchAnalyticsResponseReportsItemScanAndGo = TypedDict(
    "FetchAnalyticsResponseReportsItemScanAndGo",
    {
        "sessions": int,
        "completedCheckouts": int,
        "abandonedRate": float,
        "revenueCent": int,
        "avgBasketCent": int,
        "itemsScanned": int,
    },
)

FetchAnalyticsResponseReportsItemTills = TypedDict(
    "FetchAnalyticsResponseReportsItemTills",
    {
        "sales": int,
        "revenueCent": int,
        "avgBasketCent": int,
        "itemsSold": int,
    },
)

FetchAnalyticsResponseReportsItemOffers = TypedDict(
    "FetchAnalyticsResponseReportsItemOffers",
    {
        "activeOffers": int,
        "totalClicks": int,
        "totalFavorites": int,
        "conversionRate": float,
    },
)

FetchAnalyticsResponseReportsItemStore = TypedDict(
    "FetchAnalyticsResponseReportsItemStore",
    {
        "profileViews": int,
        "newFollowers": int,
        "totalFollowers": int,
        "dmReceived": int,
    },
)

FetchAnalyticsResponseReportsItem = TypedDict(
    "FetchAnalyticsResponseReportsItem",
    {
        "storeId": str,
        "date": str,
        "period": Literal["daily", "weekly", "monthly"],
        "scanAndGo": "FetchAnalyticsResponseReportsItemScanAndGo",
        "tills": "FetchAnalyticsResponseReportsItemTills",
        "offers": "FetchAnalyticsResponseReportsItemOffers",
        "store": "FetchAnalyticsResponseReportsItemStore",
    },
)

FetchAnalyticsResponse = TypedDict(
    "FetchAnalyticsResponse",
    {
        "success": Literal[True],
        "reports": List["FetchAnalyticsResponseReportsItem"],
    },
)

FetchApiKeysRequest = TypedDict(
    "FetchApiKeysRequest",
    {
    },
)

FetchApiKeysResponseKeysItem = TypedDict(
    "FetchApiKeysResponseKeysItem",
    {
        "keyId": str,
        "kind": Literal["secret", "publishable", "admin"],
        "mode": Literal["test", "live"],
        "name": str,
        "shown": str,
        "storeIds": NotRequired[List[str]],
        "status": Literal["active", "expired", "revoked"],
        "createdAt": str,
        "lastUsedAt": str,
        "expiresAt": NotRequired[str],
        "revokedAt": NotRequired[str],
        "replacedBy": NotRequired[str],
    },
)

FetchApiKeysResponse = TypedDict(
    "FetchApiKeysResponse",
    {
        "success": Literal[True],
        "keys": List["FetchApiKeysResponseKeysItem"],
    },
)

FetchAssistanceRequestsRequest = TypedDict(
    "FetchAssistanceRequestsRequest",
    {
        "storeId": str,
        "requestId": NotRequired[str],
        "status": NotRequired[Literal["open", "answered", "closed"]],
        "lastMessages": NotRequired[int],
        "limit": NotRequired[int],
        "cursor": NotRequired[str],
    },
)

FetchAssistanceRequestsResponseRequestsItemMessagesItem = TypedDict(
    "FetchAssistanceRequestsResponseRequestsItemMessagesItem",
    {
        "author": Literal["shopper", "staff"],
        "text": str,
        "at": str,
    },
)

FetchAssistanceRequestsResponseRequestsItem = TypedDict(
    "FetchAssistanceRequestsResponseRequestsItem",
    {
        "requestId": str,
        "storeId": str,
        "reason": Literal["shopper", "manual_assistance_required", "exception_hold", "alarm"],
        "status": Literal["open", "answered", "closed"],
        "zoneId": NotRequired[str],
        "zoneName": NotRequired[str],
        "userId": NotRequired[str],
        "deviceId": NotRequired[str],
        "deviceName": NotRequired[str],
        "eventId": NotRequired[str],
        "requestedByName": NotRequired[str],
        "purchaseId": NotRequired[str],
        "tag": NotRequired[str],
        "products": NotRequired[List[str]],
        "createdAt": str,
        "updatedAt": str,
        "messages": List["FetchAssistanceRequestsResponseRequestsItemMessagesItem"],
    },
)

FetchAssistanceRequestsResponse = TypedDict(
    "FetchAssistanceRequestsResponse",
    {
        "success": Literal[True],
        "requests": List["FetchAssistanceRequestsResponseRequestsItem"],
        "nextCursor": NotRequired[str],
    },
)

FetchAuditLogRequest = TypedDict(
    "FetchAuditLogRequest",
    {
        "since": NotRequired[str],
        "latest": NotRequired[Literal[True]],
        "entityId": NotRequired[str],
        "withoutAgents": NotRequired[Literal[True]],
        "limit": NotRequired[int],
        "cursor": NotRequired[str],
    },
)

FetchAuditLogResponseEntriesItem = TypedDict(
    "FetchAuditLogResponseEntriesItem",
    {
        "entryId": str,
        "at": str,
        "actor": str,
        "operation": str,
        "entityId": NotRequired[str],
        "requestId": str,
        "number": NotRequired[int],
        "previousHash": NotRequired[str],
        "hash": NotRequired[str],
    },
)

FetchAuditLogResponse = TypedDict(
    "FetchAuditLogResponse",
    {
        "success": Literal[True],
        "entries": List["FetchAuditLogResponseEntriesItem"],
        "nextCursor": NotRequired[str],
    },
)

FetchClickCollectOrdersRequest = TypedDict(
    "FetchClickCollectOrdersRequest",
    {
        "storeId": str,
        "status": NotRequired[Literal["pending", "accepted", "confirmed", "preparing", "ready", "picked_up", "cancelled"]],
        "limit": NotRequired[int],
        "offset": NotRequired[int],
        "cursor": NotRequired[str],
    },
)

FetchClickCollectOrdersResponseOrdersItemItemsItemReservedTagsItem = TypedDict(
    "FetchClickCollectOrdersResponseOrdersItemItemsItemReservedTagsItem",
    {
        "epc": NotRequired[str],
        "tagUid": NotRequired[str],
        "tagId": NotRequired[str],
    },
)

FetchClickCollectOrdersResponseOrdersItemItemsItem = TypedDict(
    "FetchClickCollectOrdersResponseOrdersItemItemsItem",
    {
        "productId": str,
        "ean": str,
        "name": str,
        "price": float,
        "quantity": int,
        "reservedTags": List["FetchClickCollectOrdersResponseOrdersItemItemsItemReservedTagsItem"],
    },
)

FetchClickCollectOrdersResponseOrdersItem = TypedDict(
    "FetchClickCollectOrdersResponseOrdersItem",
    {
        "orderId": str,
        "storeId": str,
        "userId": str,
        "status": Literal["pending", "confirmed", "preparing", "ready", "picked_up", "cancelled"],
        "items": List["FetchClickCollectOrdersResponseOrdersItemItemsItem"],
        "total": float,
        "currency": str,
        "note": NotRequired[str],
        "pickupTime": NotRequired[str],
        "estimatedPickupAt": str,
        "reason": NotRequired[str],
        "createdAt": str,
        "updatedAt": str,
        "pickedUpAt": NotRequired[str],
        "paid": bool,
        "lockerDeviceId": NotRequired[str],
    },
)

FetchClickCollectOrdersResponse = TypedDict(
    "FetchClickCollectOrdersResponse",
    {
        "success": Literal[True],
        "orders": List["FetchClickCollectOrdersResponseOrdersItem"],
        "total": int,
        "nextCursor": NotRequired[str],
    },
)

FetchClosingsRequest = TypedDict(
    "FetchClosingsRequest",
    {
        "storeId": str,
        "limit": NotRequired[int],
        "cursor": NotRequired[str],
    },
)

FetchClosingsResponseClosingsItemVatBreakdownValue = TypedDict(
    "FetchClosingsResponseClosingsItemVatBreakdownValue",
    {
        "net": int,
        "tax": int,
    },
)

FetchClosingsResponseClosingsItemTillsVatBreakdownValue = TypedDict(
    "FetchClosingsResponseClosingsItemTillsVatBreakdownValue",
    {
        "net": int,
        "tax": int,
    },
)

FetchClosingsResponseClosingsItemTills = TypedDict(
    "FetchClosingsResponseClosingsItemTills",
    {
        "receiptCount": int,
        "salesCent": int,
        "refundCount": int,
        "refundCent": int,
        "totalCent": int,
        "vatBreakdown": Dict[str, "FetchClosingsResponseClosingsItemTillsVatBreakdownValue"],
    },
)

FetchClosingsResponseClosingsItem = TypedDict(
    "FetchClosingsResponseClosingsItem",
    {
        "storeId": str,
        "number": int,
        "from": str,
        "date": str,
        "closedAt": str,
        "currency": Literal["EUR"],
        "receiptCount": int,
        "salesCent": int,
        "refundCount": int,
        "refundCent": int,
        "totalCent": int,
        "vatBreakdown": Dict[str, "FetchClosingsResponseClosingsItemVatBreakdownValue"],
        "tills": "FetchClosingsResponseClosingsItemTills",
    },
)

FetchClosingsResponse = TypedDict(
    "FetchClosingsResponse",
    {
        "success": Literal[True],
        "closings": List["FetchClosingsResponseClosingsItem"],
        "nextCursor": NotRequired[str],
    },
)

FetchDevicesRequest = TypedDict(
    "FetchDevicesRequest",
    {
        "storeId": NotRequired[str],
        "deviceId": NotRequired[str],
        "deviceType": NotRequired[Literal["pos_deactivator", "self_checkout_detacher", "exit_gate", "handheld_reader", "cabinet_unlocker"]],
        "limit": NotRequired[int],
        "offset": NotRequired[int],
        "cursor": NotRequired[str],
    },
)

FetchDevicesResponseDevicesItemHealth = TypedDict(
    "FetchDevicesResponseDevicesItemHealth",
    {
        "state": Literal["ready", "degraded", "absent", "unknown"],
        "unknownBecause": NotRequired[Literal["no_agent", "agent_offline", "not_reported"]],
        "detail": NotRequired[str],
        "since": NotRequired[str],
        "readsTags": NotRequired[bool],
    },
)

FetchDevicesResponseDevicesItem = TypedDict(
    "FetchDevicesResponseDevicesItem",
    {
        "deviceId": str,
        "deviceType": Literal["pos_deactivator", "self_checkout_detacher", "exit_gate", "handheld_reader", "cabinet_unlocker"],
        "storeId": str,
        "name": NotRequired[str],
        "zoneId": NotRequired[str],
        "laneId": NotRequired[str],
        "gateId": NotRequired[str],
        "tillId": NotRequired[str],
        "agentId": NotRequired[str],
        "movingToAgentId": NotRequired[str],
        "firmwareVersion": NotRequired[str],
        "canDeactivateLabel": bool,
        "canDetachHardTag": bool,
        "canReadReceiptQr": bool,
        "canReadUhfRfid": bool,
        "canReadHfNfc": bool,
        "canUnlockFixture": bool,
        "supportsOfflineAuth": bool,
        "supportedTechnologies": List[Literal["am", "rf", "uhf_rfid", "hf_nfc", "mechanical_lock"]],
        "workflowType": Literal["staff_assisted", "self_service", "automatic_exit", "pos_integrated"],
        "registeredAt": str,
        "lastSeenAt": str,
        "decommissionedAt": NotRequired[str],
        "health": NotRequired["FetchDevicesResponseDevicesItemHealth"],
    },
)

FetchDevicesResponse = TypedDict(
    "FetchDevicesResponse",
    {
        "success": Literal[True],
        "devices": List["FetchDevicesResponseDevicesItem"],
        "total": int,
        "nextCursor": NotRequired[str],
    },
)

FetchERPRecordsRequest = TypedDict(
    "FetchERPRecordsRequest",
    {
        "storeId": str,
        "dataType": Literal["orders", "suppliers"],
        "system": NotRequired[Literal["odoo", "erpnext", "businesscentral", "sapb1", "generic", "custom"]],
        "limit": NotRequired[int],
        "offset": NotRequired[int],
        "cursor": NotRequired[str],
    },
)

FetchERPRecordsResponseRecordsItem = TypedDict(
    "FetchERPRecordsResponseRecordsItem",
    {
        "externalId": str,
        "updatedAt": str,
    },
)

FetchERPRecordsResponse = TypedDict(
    "FetchERPRecordsResponse",
    {
        "success": Literal[True],
        "records": List["FetchERPRecordsResponseRecordsItem"],
        "nextCursor": NotRequired[str],
    },
)

FetchExceptionsRequest = TypedDict(
    "FetchExceptionsRequest",
    {
        "storeId": NotRequired[str],
        "state": NotRequired[Literal["open", "acknowledged"]],
        "kind": NotRequired[str],
        "kinds": NotRequired[List[str]],
        "otherThan": NotRequired[List[str]],
        "withoutAlarms": NotRequired[bool],
        "since": NotRequired[str],
        "until": NotRequired[str],
        "limit": NotRequired[int],
        "cursor": NotRequired[str],
    },
)

FetchExceptionsResponseExceptionsItemEmergency = TypedDict(
    "FetchExceptionsResponseExceptionsItemEmergency",
    {
        "startedAt": str,
        "endedAt": NotRequired[str],
    },
)

FetchExceptionsResponseExceptionsItem = TypedDict(
    "FetchExceptionsResponseExceptionsItem",
    {
        "exceptionId": str,
        "storeId": str,
        "kind": str,
        "subject": str,
        "state": Literal["open", "acknowledged"],
        "detail": str,
        "deviceId": NotRequired[str],
        "deviceName": NotRequired[str],
        "agentId": NotRequired[str],
        "agentName": NotRequired[str],
        "purchaseId": NotRequired[str],
        "eventId": NotRequired[str],
        "raisedAt": str,
        "lastRaisedAt": str,
        "times": int,
        "emergency": NotRequired["FetchExceptionsResponseExceptionsItemEmergency"],
        "acknowledgedAt": NotRequired[str],
        "acknowledgedBy": NotRequired[str],
        "acknowledgedByName": NotRequired[str],
        "note": NotRequired[str],
    },
)

FetchExceptionsResponse = TypedDict(
    "FetchExceptionsResponse",
    {
        "success": Literal[True],
        "exceptions": List["FetchExceptionsResponseExceptionsItem"],
        "total": int,
        "nextCursor": NotRequired[str],
    },
)

FetchIntegrationsRequest = TypedDict(
    "FetchIntegrationsRequest",
    {
        "storeId": str,
    },
)

FetchIntegrationsResponseProvider = TypedDict(
    "FetchIntegrationsResponseProvider",
    {
        "provider": str,
        "configuredAt": str,
        "notificationUrl": str,
    },
)

FetchIntegrationsResponseSystemsItemRoundsItem = TypedDict(
    "FetchIntegrationsResponseSystemsItemRoundsItem",
    {
        "dataType": Literal["articles", "stock", "orders", "suppliers"],
        "startedAt": str,
        "updatedAt": str,
        "isComplete": bool,
        "taken": int,
        "failed": int,
    },
)

FetchIntegrationsResponseSystemsItem = TypedDict(
    "FetchIntegrationsResponseSystemsItem",
    {
        "side": Literal["pos", "erp"],
        "system": str,
        "hasCredentials": bool,
        "changedAt": str,
        "rounds": List["FetchIntegrationsResponseSystemsItemRoundsItem"],
    },
)

FetchIntegrationsResponse = TypedDict(
    "FetchIntegrationsResponse",
    {
        "success": Literal[True],
        "provider": NotRequired["FetchIntegrationsResponseProvider"],
        "systems": List["FetchIntegrationsResponseSystemsItem"],
    },
)

FetchOfferRequest = TypedDict(
    "FetchOfferRequest",
    {
        "offerId": str,
        "storeId": NotRequired[str],
    },
)

FetchOfferResponseOfferProductsItemPricesItem = TypedDict(
    "FetchOfferResponseOfferProductsItemPricesItem",
    {
        "storeId": str,
        "originalPrice": NotRequired[float],
        "discountPrice": float,
    },
)

FetchOfferResponseOfferProductsItem = TypedDict(
    "FetchOfferResponseOfferProductsItem",
    {
        "ean": NotRequired[str],
        "name": str,
        "category": NotRequired[str],
        "manufacturer": NotRequired[str],
        "unit": NotRequired[str],
        "description": NotRequired[str],
        "originalPrice": NotRequired[float],
        "discountPrice": float,
        "prices": List["FetchOfferResponseOfferProductsItemPricesItem"],
    },
)

FetchOfferResponseOffer = TypedDict(
    "FetchOfferResponseOffer",
    {
        "id": str,
        "groupId": str,
        "title": str,
        "description": str,
        "storeIds": List[str],
        "validFrom": str,
        "validTo": str,
        "merchantColor": str,
        "tags": List[str],
        "imageUrl": NotRequired[str],
        "quantity": NotRequired[int],
        "productCount": int,
        "isActive": bool,
        "status": Literal["DRAFT", "ACTIVE", "EXPIRED", "ARCHIVED"],
        "discountPercent": int,
        "scope": Literal["LOCAL", "MULTI_STORE", "CITY_WIDE", "REGIONAL", "NATIONAL"],
        "storeCount": int,
        "clickCount": int,
        "favoritedCount": int,
        "createdAt": str,
        "products": List["FetchOfferResponseOfferProductsItem"],
    },
)

FetchOfferResponse = TypedDict(
    "FetchOfferResponse",
    {
        "success": Literal[True],
        "_sandbox": NotRequired[Literal[True]],
        "offer": "FetchOfferResponseOffer",
    },
)

FetchOfflineFiguresRequest = TypedDict(
    "FetchOfflineFiguresRequest",
    {
        "storeId": str,
        "since": str,
        "until": str,
    },
)

FetchOfflineFiguresResponseOutagesAgentsItem = TypedDict(
    "FetchOfflineFiguresResponseOutagesAgentsItem",
    {
        "agentId": str,
        "name": NotRequired[str],
        "count": int,
        "seconds": int,
        "isRunning": bool,
    },
)

FetchOfflineFiguresResponseOutages = TypedDict(
    "FetchOfflineFiguresResponseOutages",
    {
        "count": int,
        "seconds": int,
        "longerThanSeconds": NotRequired[int],
        "agents": List["FetchOfflineFiguresResponseOutagesAgentsItem"],
    },
)

FetchOfflineFiguresResponseDecisions = TypedDict(
    "FetchOfflineFiguresResponseDecisions",
    {
        "released": int,
        "denied": int,
    },
)

FetchOfflineFiguresResponseExceptionsItem = TypedDict(
    "FetchOfflineFiguresResponseExceptionsItem",
    {
        "kind": Literal["double_redeem", "late_redeem", "released_after_refund", "released_on_hold", "redeemed_after_revocation", "cancelled_after_release", "released_then_voided", "lease_overridden"],
        "count": int,
        "pieces": int,
        "value": float,
        "withoutPrice": int,
    },
)

FetchOfflineFiguresResponseGoods = TypedDict(
    "FetchOfflineFiguresResponseGoods",
    {
        "pieces": int,
        "value": float,
        "withoutPrice": int,
    },
)

FetchOfflineFiguresResponse = TypedDict(
    "FetchOfflineFiguresResponse",
    {
        "success": Literal[True],
        "outages": "FetchOfflineFiguresResponseOutages",
        "decisions": "FetchOfflineFiguresResponseDecisions",
        "exceptions": List["FetchOfflineFiguresResponseExceptionsItem"],
        "goods": "FetchOfflineFiguresResponseGoods",
        "isCut": bool,
    },
)

FetchOpenTasksRequest = TypedDict(
    "FetchOpenTasksRequest",
    {
        "storeId": NotRequired[str],
    },
)

FetchOpenTasksResponseTasksItem = TypedDict(
    "FetchOpenTasksResponseTasksItem",
    {
        "kind": Literal["emergency", "alarm", "alarmHelp", "ageCheck", "spotCheck", "help", "order", "release", "refund", "exception"],
        "count": int,
        "oldestAt": NotRequired[str],
    },
)

FetchOpenTasksResponseStoresItemTasksItem = TypedDict(
    "FetchOpenTasksResponseStoresItemTasksItem",
    {
        "kind": Literal["emergency", "alarm", "alarmHelp", "ageCheck", "spotCheck", "help", "order", "release", "refund", "exception"],
        "count": int,
        "oldestAt": NotRequired[str],
    },
)

FetchOpenTasksResponseStoresItem = TypedDict(
    "FetchOpenTasksResponseStoresItem",
    {
        "storeId": str,
        "tasks": List["FetchOpenTasksResponseStoresItemTasksItem"],
    },
)

FetchOpenTasksResponse = TypedDict(
    "FetchOpenTasksResponse",
    {
        "success": Literal[True],
        "tasks": List["FetchOpenTasksResponseTasksItem"],
        "stores": NotRequired[List["FetchOpenTasksResponseStoresItem"]],
    },
)

FetchOperatorsRequest = TypedDict(
    "FetchOperatorsRequest",
    {
        "storeId": str,
    },
)

FetchOperatorsResponseOperatorsItem = TypedDict(
    "FetchOperatorsResponseOperatorsItem",
    {
        "operatorId": str,
        "storeId": str,
        "name": str,
        "hasPin": bool,
        "hasCard": bool,
        "createdAt": str,
    },
)

FetchOperatorsResponse = TypedDict(
    "FetchOperatorsResponse",
    {
        "success": Literal[True],
        "operators": List["FetchOperatorsResponseOperatorsItem"],
    },
)

FetchPasskeysRequest = TypedDict(
    "FetchPasskeysRequest",
    {
    },
)

FetchPasskeysResponsePasskeysItem = TypedDict(
    "FetchPasskeysResponsePasskeysItem",
    {
        "passkeyId": str,
        "name": str,
        "backedUp": bool,
        "createdAt": str,
        "lastUsedAt": NotRequired[str],
    },
)

FetchPasskeysResponse = TypedDict(
    "FetchPasskeysResponse",
    {
        "success": Literal[True],
        "available": bool,
        "passkeys": List["FetchPasskeysResponsePasskeysItem"],
    },
)

FetchProductRequest = TypedDict(
    "FetchProductRequest",
    {
        "productId": NotRequired[str],
        "id": NotRequired[str],
        "barcode": NotRequired[str],
        "ean": NotRequired[str],
        "storeId": NotRequired[str],
    },
)

FetchProductResponseNutrition = TypedDict(
    "FetchProductResponseNutrition",
    {
        "calories": NotRequired[float],
        "fat": NotRequired[float],
        "saturatedFat": NotRequired[float],
        "carbohydrates": NotRequired[float],
        "sugar": NotRequired[float],
        "protein": NotRequired[float],
        "fiber": NotRequired[float],
        "salt": NotRequired[float],
        "nutriScore": NotRequired[Literal["A", "B", "C", "D", "E"]],
        "per": Literal["100g", "100ml"],
        "source": NotRequired[Literal["merchant", "reference", "community"]],
        "confidence": NotRequired[float],
    },
)

FetchProductResponseMedia = TypedDict(
    "FetchProductResponseMedia",
    {
        "snapshot": str,
    },
)

FetchProductResponseFlags = TypedDict(
    "FetchProductResponseFlags",
    {
        "requiresHumanVerification": bool,
    },
)

FetchProductResponseLabel = TypedDict(
    "FetchProductResponseLabel",
    {
        "barcode": str,
        "price": float,
        "weightGrams": NotRequired[int],
    },
)

FetchProductResponse = TypedDict(
    "FetchProductResponse",
    {
        "productId": str,
        "ean": str,
        "name": str,
        "price": float,
        "oldPrice": NotRequired[float],
        "vat": Literal[7, 19],
        "storeId": NotRequired[str],
        "category": NotRequired[str],
        "unit": NotRequired[str],
        "brand": NotRequired[str],
        "description": NotRequired[str],
        "imageUrl": NotRequired[str],
        "weight": NotRequired[str],
        "isOrganic": NotRequired[bool],
        "isVegan": NotRequired[bool],
        "allergens": NotRequired[List[str]],
        "deposit": NotRequired[float],
        "depositVat": NotRequired[Literal[7, 19]],
        "nutrition": NotRequired["FetchProductResponseNutrition"],
        "media": NotRequired["FetchProductResponseMedia"],
        "tagged": bool,
        "flags": "FetchProductResponseFlags",
        "fromPos": bool,
        "posProductId": str,
        "nameLower": str,
        "brandLower": NotRequired[str],
        "createdAt": str,
        "updatedAt": str,
        "success": Literal[True],
        "label": NotRequired["FetchProductResponseLabel"],
    },
)

FetchProductsRequest = TypedDict(
    "FetchProductsRequest",
    {
        "storeId": NotRequired[str],
        "category": NotRequired[str],
        "limit": NotRequired[int],
        "offset": NotRequired[int],
        "cursor": NotRequired[str],
    },
)

FetchProductsResponse = TypedDict(
    "FetchProductsResponse",
    {
        "success": Literal[True],
        "products": List["Product"],
        "total": int,
        "nextCursor": NotRequired[str],
    },
)

FetchProfileRequest = TypedDict(
    "FetchProfileRequest",
    {
    },
)

FetchProfileResponse = TypedDict(
    "FetchProfileResponse",
    {
        "userId": str,
        "email": str,
        "name": str,
        "role": Literal["owner", "admin", "manager", "associate", "viewer", "platform"],
        "storeIds": NotRequired[List[str]],
        "sandboxOnly": bool,
        "status": Literal["invited", "active"],
        "createdAt": str,
        "lastSignInAt": NotRequired[str],
        "invitationExpiresAt": NotRequired[str],
        "success": Literal[True],
        "account": str,
        "mode": Literal["test", "live"],
        "mayUseLive": bool,
        "hasSecondFactor": bool,
        "hasPassword": bool,
        "hasAuthenticatorApp": bool,
    },
)

FetchProtectedItemRequest = TypedDict(
    "FetchProtectedItemRequest",
    {
        "storeId": str,
        "tagId": NotRequired[str],
        "epc": NotRequired[str],
        "tagUid": NotRequired[str],
        "itemLineId": NotRequired[str],
    },
)

FetchProtectedItemResponseMovesItem = TypedDict(
    "FetchProtectedItemResponseMovesItem",
    {
        "at": str,
        "from": NotRequired[Literal["sellable", "paid", "reserved_bopis", "picked_up", "returned", "transfer_in_transit", "cancelled", "exception_hold"]],
        "to": Literal["sellable", "paid", "reserved_bopis", "picked_up", "returned", "transfer_in_transit", "cancelled", "exception_hold"],
        "purchaseId": NotRequired[str],
        "reason": NotRequired[str],
        "operatorId": NotRequired[str],
    },
)

FetchProtectedItemResponse = TypedDict(
    "FetchProtectedItemResponse",
    {
        "itemId": str,
        "storeId": str,
        "epc": NotRequired[str],
        "tagUid": NotRequired[str],
        "tagId": NotRequired[str],
        "tagTechnology": NotRequired[str],
        "protectionTechnology": NotRequired[str],
        "serialNumber": NotRequired[str],
        "ean": NotRequired[str],
        "brand": NotRequired[str],
        "category": NotRequired[str],
        "price": NotRequired[float],
        "lot": NotRequired[str],
        "expiry": NotRequired[str],
        "serial": NotRequired[str],
        "itemStatus": Literal["sellable", "paid", "reserved_bopis", "picked_up", "returned", "transfer_in_transit", "cancelled", "exception_hold"],
        "recalled": NotRequired[Literal[True]],
        "product": NotRequired["Product"],
        "purchaseId": NotRequired[str],
        "itemLineId": NotRequired[str],
        "updatedAt": str,
        "success": Literal[True],
        "moves": List["FetchProtectedItemResponseMovesItem"],
    },
)

FetchProtectionEventsRequest = TypedDict(
    "FetchProtectionEventsRequest",
    {
        "storeId": str,
        "eventId": NotRequired[str],
        "type": NotRequired[Literal["protection.authorization.requested", "protection.authorization.granted", "protection.authorization.denied", "protection.action.completed", "protection.action.failed", "protection.device.offline", "protection.exception.raised"]],
        "deviceId": NotRequired[str],
        "purchaseId": NotRequired[str],
        "since": NotRequired[str],
        "latest": NotRequired[Literal[True]],
        "limit": NotRequired[int],
        "cursor": NotRequired[str],
    },
)

FetchProtectionEventsResponseEventsItemAlarm = TypedDict(
    "FetchProtectionEventsResponseEventsItemAlarm",
    {
        "disposition": Literal["real", "unintentional", "tag_left_on", "staff_error", "phantom"],
        "operatorId": str,
        "recoveredValue": NotRequired[float],
        "disposedAt": str,
    },
)

FetchProtectionEventsResponseEventsItemFactsItem = TypedDict(
    "FetchProtectionEventsResponseEventsItemFactsItem",
    {
        "itemStatus": NotRequired[Literal["sellable", "paid", "reserved_bopis", "picked_up", "returned", "transfer_in_transit", "cancelled", "exception_hold"]],
        "category": NotRequired[str],
        "brand": NotRequired[str],
        "price": NotRequired[float],
        "recalled": bool,
        "right": Literal["free", "used", "leased_elsewhere", "none"],
        "hasOperator": bool,
        "policyStage": Literal["fresh", "stale", "expired"],
    },
)

FetchProtectionEventsResponseEventsItem = TypedDict(
    "FetchProtectionEventsResponseEventsItem",
    {
        "type": Literal["protection.authorization.requested", "protection.authorization.granted", "protection.authorization.denied", "protection.action.completed", "protection.action.failed", "protection.device.offline", "protection.exception.raised"],
        "eventId": str,
        "protectionAction": NotRequired[Literal["deactivate_label", "detach_hard_tag", "suppress_alarm", "authorize_exit", "unlock_fixture", "verify_item_status"]],
        "protectionTechnology": NotRequired[Literal["am", "rf", "uhf_rfid", "hf_nfc", "mechanical_lock"]],
        "occurredAt": str,
        "processedAt": NotRequired[str],
        "storeId": str,
        "zoneId": NotRequired[str],
        "gateId": NotRequired[str],
        "laneId": NotRequired[str],
        "deviceId": NotRequired[str],
        "deviceType": NotRequired[Literal["pos_deactivator", "self_checkout_detacher", "exit_gate", "handheld_reader", "cabinet_unlocker"]],
        "firmwareVersion": NotRequired[str],
        "purchaseId": NotRequired[str],
        "itemLineId": NotRequired[str],
        "itemStatus": NotRequired[Literal["sellable", "paid", "reserved_bopis", "picked_up", "returned", "transfer_in_transit", "cancelled", "exception_hold"]],
        "workflowType": NotRequired[Literal["staff_assisted", "self_service", "automatic_exit", "pos_integrated"]],
        "scanSource": NotRequired[Literal["pos", "sco", "exit_gate", "associate_handheld", "customer_phone", "service_desk"]],
        "operatorId": NotRequired[str],
        "epc": NotRequired[str],
        "tagUid": NotRequired[str],
        "tagId": NotRequired[str],
        "tagTechnology": NotRequired[Literal["NfcA", "NfcB", "NfcV", "IsoDep", "MifareClassic", "MifareUltralight"]],
        "authorizationState": NotRequired[Literal["issued", "redeemed", "expired", "revoked"]],
        "replayProtectedNonce": NotRequired[str],
        "reason": NotRequired[Union[Literal["token_invalid", "token_expired", "token_revoked", "device_unknown", "device_revoked", "store_mismatch", "locker_mismatch", "clock_untrusted", "policy_stale", "device_not_capable", "technology_mismatch", "item_unknown", "recalled", "item_not_paid", "no_tagged_goods", "already_redeemed", "authorization_outstanding", "action_not_allowed", "workflow_not_allowed", "manual_assistance_required", "limit_exceeded", "tag_not_read"], str]],
        "offline": NotRequired[bool],
        "emergency": NotRequired[bool],
        "unknownFacts": NotRequired[List[Literal["category", "brand", "price"]]],
        "outcome": NotRequired[Literal["confirmed", "failed", "unknown"]],
        "detail": NotRequired[str],
        "alarm": NotRequired["FetchProtectionEventsResponseEventsItemAlarm"],
        "facts": NotRequired[List["FetchProtectionEventsResponseEventsItemFactsItem"]],
    },
)

FetchProtectionEventsResponse = TypedDict(
    "FetchProtectionEventsResponse",
    {
        "success": Literal[True],
        "events": List["FetchProtectionEventsResponseEventsItem"],
        "nextCursor": NotRequired[str],
    },
)

FetchProtectionPolicyRequest = TypedDict(
    "FetchProtectionPolicyRequest",
    {
        "storeId": str,
    },
)

FetchProtectionPolicyResponsePolicyOffline = TypedDict(
    "FetchProtectionPolicyResponsePolicyOffline",
    {
        "maxRiskClass": int,
        "hardCount": int,
        "maxIsolatedSeconds": int,
        "storeBound": Literal["risk", "deny"],
    },
)

FetchProtectionPolicyResponsePolicyGateSeverityItem = TypedDict(
    "FetchProtectionPolicyResponsePolicyGateSeverityItem",
    {
        "category": NotRequired[str],
        "fromValue": NotRequired[float],
        "severity": Literal["silent", "notify", "siren"],
    },
)

FetchProtectionPolicyResponsePolicyGateBulk = TypedDict(
    "FetchProtectionPolicyResponsePolicyGateBulk",
    {
        "tags": int,
        "seconds": int,
    },
)

FetchProtectionPolicyResponsePolicyGateReplenishment = TypedDict(
    "FetchProtectionPolicyResponsePolicyGateReplenishment",
    {
        "tags": int,
        "seconds": int,
        "muteSeconds": int,
    },
)

FetchProtectionPolicyResponsePolicyGate = TypedDict(
    "FetchProtectionPolicyResponsePolicyGate",
    {
        "severity": List["FetchProtectionPolicyResponsePolicyGateSeverityItem"],
        "ownPrefixes": List[str],
        "ownMasks": List[str],
        "alarmMasks": List[str],
        "bulk": "FetchProtectionPolicyResponsePolicyGateBulk",
        "replenishment": "FetchProtectionPolicyResponsePolicyGateReplenishment",
    },
)

FetchProtectionPolicyResponsePolicyTillSales = TypedDict(
    "FetchProtectionPolicyResponsePolicyTillSales",
    {
        "agents": List[str],
        "salesPerHour": int,
        "valuePerHour": float,
        "codes": Literal["barrier", "release"],
        "passByProduct": int,
    },
)

FetchProtectionPolicyResponsePolicy = TypedDict(
    "FetchProtectionPolicyResponsePolicy",
    {
        "allowedActionsByCategory": Dict[str, Dict[str, List[Literal["staff_assisted", "self_service", "automatic_exit", "pos_integrated"]]]],
        "requiresManualOverrideAboveValue": float,
        "requiresStaffForBrand": List[str],
        "offline": "FetchProtectionPolicyResponsePolicyOffline",
        "unknownTag": Literal["ignore", "notify", "siren"],
        "gate": "FetchProtectionPolicyResponsePolicyGate",
        "tillSales": "FetchProtectionPolicyResponsePolicyTillSales",
        "operatorOverridesPerHour": int,
        "spotCheckRate": float,
        "minAgent": NotRequired[str],
        "home": str,
        "homeEpoch": int,
    },
)

FetchProtectionPolicyResponse = TypedDict(
    "FetchProtectionPolicyResponse",
    {
        "success": Literal[True],
        "policy": "FetchProtectionPolicyResponsePolicy",
        "version": int,
        "worstCaseLoss": float,
    },
)

FetchPurchaseHistoryRequest = TypedDict(
    "FetchPurchaseHistoryRequest",
    {
        "storeId": NotRequired[str],
        "userId": NotRequired[str],
        "awaitingApproval": NotRequired[Literal[True]],
        "ean": NotRequired[str],
        "tag": NotRequired[str],
        "number": NotRequired[str],
        "saleId": NotRequired[str],
        "receiptCode": NotRequired[str],
        "receipt": NotRequired[str],
        "day": NotRequired[str],
        "totalCent": NotRequired[int],
        "limit": NotRequired[int],
        "offset": NotRequired[int],
        "cursor": NotRequired[str],
    },
)

FetchPurchaseHistoryResponse = TypedDict(
    "FetchPurchaseHistoryResponse",
    {
        "success": Literal[True],
        "purchases": List["Purchase"],
        "total": int,
        "totalIsEstimate": NotRequired[Literal[True]],
        "nextCursor": NotRequired[str],
    },
)

FetchPurchaseRequest = TypedDict(
    "FetchPurchaseRequest",
    {
        "transactionId": NotRequired[str],
        "purchaseId": NotRequired[str],
        "id": NotRequired[str],
        "sessionId": NotRequired[str],
    },
)

FetchPurchaseResponseItemsItem = TypedDict(
    "FetchPurchaseResponseItemsItem",
    {
        "itemLineId": str,
        "productId": NotRequired[str],
        "name": str,
        "price": float,
        "paid": float,
        "listPrice": NotRequired[float],
        "quantity": int,
        "cameBack": NotRequired[int],
        "depositOf": NotRequired[str],
        "weightGrams": NotRequired[int],
        "priceOrigin": NotRequired[Literal["catalogue", "item", "client"]],
        "priceReason": NotRequired[Literal["staff", "markdown", "coupon", "till"]],
    },
)

FetchPurchaseResponseRefundsItemLinesItem = TypedDict(
    "FetchPurchaseResponseRefundsItemLinesItem",
    {
        "itemLineId": str,
        "quantity": int,
        "part": NotRequired[float],
    },
)

FetchPurchaseResponseRefundsItem = TypedDict(
    "FetchPurchaseResponseRefundsItem",
    {
        "refundId": str,
        "kind": Literal["whole", "part", "late"],
        "status": Literal["pending", "done", "failed"],
        "inDoubt": NotRequired[Literal[True]],
        "outside": NotRequired[Literal["refund", "dispute"]],
        "lines": NotRequired[List["FetchPurchaseResponseRefundsItemLinesItem"]],
        "amount": float,
        "requestedBy": NotRequired[str],
        "requestedByName": NotRequired[str],
        "createdAt": str,
        "completedAt": NotRequired[str],
    },
)

FetchPurchaseResponse = TypedDict(
    "FetchPurchaseResponse",
    {
        "transactionId": str,
        "storeId": str,
        "items": List["FetchPurchaseResponseItemsItem"],
        "total": float,
        "refunded": float,
        "refunds": List["FetchPurchaseResponseRefundsItem"],
        "currency": str,
        "timestamp": str,
        "status": Literal["CREATED", "PENDING_PAYMENT", "SUCCESS", "UNLOADED", "CANCELLED"],
        "refundStatus": NotRequired[Literal["pending", "done", "failed"]],
        "awaitingApproval": NotRequired[bool],
        "approvalReason": NotRequired[Literal["age", "spot_check"]],
        "securityTagMode": NotRequired[Literal["none", "manual", "station", "rfid"]],
        "securityTagStatus": NotRequired[Literal["pending", "deactivated"]],
        "securityTagHint": NotRequired[str],
        "receipt": "TransactionData",
        "success": Literal[True],
    },
)

FetchPushKeyRequest = TypedDict(
    "FetchPushKeyRequest",
    {
    },
)

FetchPushKeyResponse = TypedDict(
    "FetchPushKeyResponse",
    {
        "success": Literal[True],
        "publicKey": str,
    },
)

FetchPushSubscriptionsRequest = TypedDict(
    "FetchPushSubscriptionsRequest",
    {
        "limit": NotRequired[int],
        "cursor": NotRequired[str],
    },
)

FetchPushSubscriptionsResponseSubscriptionsItem = TypedDict(
    "FetchPushSubscriptionsResponseSubscriptionsItem",
    {
        "subscriptionId": str,
        "kind": Literal["web", "https"],
        "notices": Literal["orders", "alarms"],
        "endpoint": NotRequired[str],
        "userId": NotRequired[str],
        "storeId": NotRequired[str],
        "consoleUserId": NotRequired[str],
        "createdAt": str,
    },
)

FetchPushSubscriptionsResponse = TypedDict(
    "FetchPushSubscriptionsResponse",
    {
        "success": Literal[True],
        "subscriptions": List["FetchPushSubscriptionsResponseSubscriptionsItem"],
        "nextCursor": NotRequired[str],
    },
)

FetchRecallsRequest = TypedDict(
    "FetchRecallsRequest",
    {
        "storeId": NotRequired[str],
        "state": NotRequired[Literal["active", "ended"]],
        "limit": NotRequired[int],
        "cursor": NotRequired[str],
    },
)

FetchRecallsResponseRecallsItem = TypedDict(
    "FetchRecallsResponseRecallsItem",
    {
        "recallId": str,
        "state": Literal["active", "ended"],
        "storeIds": NotRequired[List[str]],
        "ean": str,
        "name": str,
        "lot": NotRequired[str],
        "expiry": NotRequired[str],
        "serial": NotRequired[str],
        "reason": str,
        "startedAt": str,
        "endedAt": NotRequired[str],
        "items": NotRequired[int],
        "soldItems": NotRequired[int],
    },
)

FetchRecallsResponse = TypedDict(
    "FetchRecallsResponse",
    {
        "success": Literal[True],
        "recalls": List["FetchRecallsResponseRecallsItem"],
        "nextCursor": NotRequired[str],
    },
)

FetchRegistrationsRequest = TypedDict(
    "FetchRegistrationsRequest",
    {
        "status": NotRequired[Literal["pending", "approved", "rejected"]],
        "latest": NotRequired[Literal[True]],
        "limit": NotRequired[int],
        "cursor": NotRequired[str],
    },
)

FetchRegistrationsResponseRegistrationsItemAddress = TypedDict(
    "FetchRegistrationsResponseRegistrationsItemAddress",
    {
        "street": str,
        "city": str,
        "zip": str,
        "country": str,
    },
)

FetchRegistrationsResponseRegistrationsItem = TypedDict(
    "FetchRegistrationsResponseRegistrationsItem",
    {
        "registrationId": str,
        "kind": Literal["store", "account"],
        "status": Literal["pending", "approved", "rejected"],
        "companyName": str,
        "tradingName": NotRequired[str],
        "address": NotRequired["FetchRegistrationsResponseRegistrationsItemAddress"],
        "phone": NotRequired[str],
        "role": NotRequired[str],
        "contactEmail": NotRequired[str],
        "package": NotRequired[str],
        "accountId": NotRequired[str],
        "storeId": NotRequired[str],
        "reason": NotRequired[str],
        "submittedAt": str,
        "decidedAt": NotRequired[str],
    },
)

FetchRegistrationsResponse = TypedDict(
    "FetchRegistrationsResponse",
    {
        "success": Literal[True],
        "registrations": List["FetchRegistrationsResponseRegistrationsItem"],
        "nextCursor": NotRequired[str],
    },
)

FetchSessionsRequest = TypedDict(
    "FetchSessionsRequest",
    {
    },
)

FetchSessionsResponseSessionsItem = TypedDict(
    "FetchSessionsResponseSessionsItem",
    {
        "sessionId": str,
        "device": str,
        "mode": Literal["test", "live"],
        "isCurrent": bool,
        "hasSecondFactor": bool,
        "createdAt": str,
        "lastUsedAt": str,
        "expiresAt": str,
    },
)

FetchSessionsResponse = TypedDict(
    "FetchSessionsResponse",
    {
        "success": Literal[True],
        "sessions": List["FetchSessionsResponseSessionsItem"],
    },
)

FetchSignedDocumentsRequestHave = TypedDict(
    "FetchSignedDocumentsRequestHave",
    {
        "keys": NotRequired[List[int]],
        "policy": NotRequired[List[int]],
        "deny": NotRequired[List[int]],
        "items": NotRequired[List[int]],
    },
)

FetchSignedDocumentsRequestDevicesStatesItem = TypedDict(
    "FetchSignedDocumentsRequestDevicesStatesItem",
    {
        "deviceId": str,
        "state": str,
        "detail": NotRequired[str],
        "since": NotRequired[str],
        "readsTags": NotRequired[bool],
    },
)

FetchSignedDocumentsRequestDevices = TypedDict(
    "FetchSignedDocumentsRequestDevices",
    {
        "observedAt": str,
        "states": List["FetchSignedDocumentsRequestDevicesStatesItem"],
    },
)

FetchSignedDocumentsRequest = TypedDict(
    "FetchSignedDocumentsRequest",
    {
        "have": NotRequired["FetchSignedDocumentsRequestHave"],
        "broker": NotRequired[str],
        "address": NotRequired[str],
        "resynced": NotRequired[int],
        "cursor": NotRequired[str],
        "revocations": NotRequired[List[str]],
        "pictures": NotRequired[List[str]],
        "alarms": NotRequired[List[str]],
        "release": NotRequired[str],
        "devices": NotRequired["FetchSignedDocumentsRequestDevices"],
        "ledgerSeq": NotRequired[int],
    },
)

FetchSignedDocumentsResponseAlarmsItem = TypedDict(
    "FetchSignedDocumentsResponseAlarmsItem",
    {
        "eventId": str,
        "step": Literal["acknowledged", "real", "unintentional", "tag_left_on", "staff_error", "phantom"],
        "by": str,
    },
)

FetchSignedDocumentsResponse = TypedDict(
    "FetchSignedDocumentsResponse",
    {
        "success": Literal[True],
        "documents": List[str],
        "broker": NotRequired[str],
        "nextCursor": NotRequired[str],
        "pictures": NotRequired[List[str]],
        "alarms": NotRequired[List["FetchSignedDocumentsResponseAlarmsItem"]],
        "commands": NotRequired[List[str]],
        "forked": NotRequired[Literal[True]],
    },
)

FetchStockRequest = TypedDict(
    "FetchStockRequest",
    {
        "storeId": str,
        "productId": NotRequired[str],
        "limit": NotRequired[int],
        "offset": NotRequired[int],
        "cursor": NotRequired[str],
    },
)

FetchStockResponseStockItem = TypedDict(
    "FetchStockResponseStockItem",
    {
        "storeId": str,
        "productId": str,
        "quantity": int,
        "reserved": int,
        "available": int,
        "updatedAt": str,
    },
)

FetchStockResponse = TypedDict(
    "FetchStockResponse",
    {
        "success": Literal[True],
        "stock": List["FetchStockResponseStockItem"],
        "total": int,
        "nextCursor": NotRequired[str],
    },
)

FetchStoreNamesRequest = TypedDict(
    "FetchStoreNamesRequest",
    {
        "limit": NotRequired[int],
        "cursor": NotRequired[str],
    },
)

FetchStoreNamesResponseStoresItem = TypedDict(
    "FetchStoreNamesResponseStoresItem",
    {
        "storeId": str,
        "tradingName": str,
        "street": str,
        "city": str,
    },
)

FetchStoreNamesResponse = TypedDict(
    "FetchStoreNamesResponse",
    {
        "success": Literal[True],
        "stores": List["FetchStoreNamesResponseStoresItem"],
        "total": int,
        "nextCursor": NotRequired[str],
    },
)

FetchStoreRequest = TypedDict(
    "FetchStoreRequest",
    {
        "storeId": str,
        "includeProducts": NotRequired[bool],
    },
)

FetchStoreResponseAddress = TypedDict(
    "FetchStoreResponseAddress",
    {
        "street": str,
        "city": str,
        "zip": str,
        "country": str,
    },
)

FetchStoreResponseCoordinates = TypedDict(
    "FetchStoreResponseCoordinates",
    {
        "lat": float,
        "lng": float,
    },
)

FetchStoreResponse = TypedDict(
    "FetchStoreResponse",
    {
        "storeId": str,
        "companyName": str,
        "tradingName": str,
        "address": "FetchStoreResponseAddress",
        "coordinates": NotRequired["FetchStoreResponseCoordinates"],
        "hasScanAndGo": bool,
        "package": Literal["DISCOVER", "ASSIST", "GO", "GROW", "PRIME"],
        "securityTagMode": Literal["none", "manual", "station", "rfid"],
        "securityTagHint": NotRequired[str],
        "protectionTechnology": NotRequired[Literal["am", "rf", "uhf_rfid", "hf_nfc", "mechanical_lock"]],
        "deviceType": NotRequired[Literal["pos_deactivator", "self_checkout_detacher", "exit_gate", "handheld_reader", "cabinet_unlocker"]],
        "workflowType": NotRequired[Literal["staff_assisted", "self_service", "automatic_exit", "pos_integrated"]],
        "gln": NotRequired[str],
        "inStoreCodes": NotRequired[List[str]],
        "success": Literal[True],
        "phone": NotRequired[str],
        "email": NotRequired[str],
        "website": NotRequired[str],
        "openingHours": NotRequired[Dict[str, str]],
        "products": NotRequired[List["Product"]],
    },
)

FetchStoresRequest = TypedDict(
    "FetchStoresRequest",
    {
        "city": NotRequired[str],
        "radius": NotRequired[float],
        "lat": NotRequired[float],
        "lng": NotRequired[float],
        "limit": NotRequired[int],
        "offset": NotRequired[int],
        "cursor": NotRequired[str],
    },
)

FetchStoresResponse = TypedDict(
    "FetchStoresResponse",
    {
        "success": Literal[True],
        "stores": List["Store"],
        "total": int,
        "nextCursor": NotRequired[str],
    },
)

FetchUsersRequest = TypedDict(
    "FetchUsersRequest",
    {
    },
)

FetchUsersResponseUsersItem = TypedDict(
    "FetchUsersResponseUsersItem",
    {
        "userId": str,
        "email": str,
        "name": str,
        "role": Literal["owner", "admin", "manager", "associate", "viewer", "platform"],
        "storeIds": NotRequired[List[str]],
        "sandboxOnly": bool,
        "status": Literal["invited", "active"],
        "createdAt": str,
        "lastSignInAt": NotRequired[str],
        "invitationExpiresAt": NotRequired[str],
    },
)

FetchUsersResponse = TypedDict(
    "FetchUsersResponse",
    {
        "success": Literal[True],
        "users": List["FetchUsersResponseUsersItem"],
    },
)

FetchWebhookDeliveriesRequest = TypedDict(
    "FetchWebhookDeliveriesRequest",
    {
        "webhookId": NotRequired[str],
        "storeId": NotRequired[str],
        "status": NotRequired[Literal["pending", "delivered", "failed"]],
        "event": NotRequired[Literal["checkout.completed", "securityTag.deactivated", "product.created", "product.bulk_imported", "offer.published", "clickcollect.order", "clickcollect.status_changed", "clickcollect.picked_up", "payment.created", "payment.refunded", "loyalty.points_earned", "loyalty.points_redeemed", "loyalty.enrollment", "loyalty.reward_unlocked", "loyalty.tier_changed", "loyalty.qr_earned", "loyalty.checkin_earned", "integration.pos.synced", "integration.pos.pushed", "integration.erp.synced", "integration.erp.pushed", "integration.psp.configured", "protection.authorization.requested", "protection.authorization.granted", "protection.authorization.denied", "protection.action.completed", "protection.action.failed", "protection.device.offline", "protection.exception.raised", "webhook.test"]],
        "eventId": NotRequired[str],
        "limit": NotRequired[int],
        "cursor": NotRequired[str],
    },
)

FetchWebhookDeliveriesResponseDeliveriesItemAttemptsItem = TypedDict(
    "FetchWebhookDeliveriesResponseDeliveriesItemAttemptsItem",
    {
        "attempt": int,
        "at": str,
        "durationMs": int,
        "status": NotRequired[int],
        "error": NotRequired[str],
        "answer": NotRequired[str],
    },
)

FetchWebhookDeliveriesResponseDeliveriesItem = TypedDict(
    "FetchWebhookDeliveriesResponseDeliveriesItem",
    {
        "deliveryId": str,
        "webhookId": str,
        "eventId": str,
        "event": str,
        "storeId": NotRequired[str],
        "status": Literal["pending", "delivered", "failed"],
        "attempts": List["FetchWebhookDeliveriesResponseDeliveriesItemAttemptsItem"],
        "nextAttemptAt": NotRequired[str],
        "createdAt": str,
        "finishedAt": NotRequired[str],
    },
)

FetchWebhookDeliveriesResponse = TypedDict(
    "FetchWebhookDeliveriesResponse",
    {
        "success": Literal[True],
        "deliveries": List["FetchWebhookDeliveriesResponseDeliveriesItem"],
        "nextCursor": NotRequired[str],
    },
)

FetchWebhookEventsRequest = TypedDict(
    "FetchWebhookEventsRequest",
    {
        "storeId": NotRequired[str],
        "events": NotRequired[List[Literal["*", "checkout.completed", "securityTag.deactivated", "product.created", "product.bulk_imported", "offer.published", "clickcollect.order", "clickcollect.status_changed", "clickcollect.picked_up", "payment.created", "payment.refunded", "loyalty.points_earned", "loyalty.points_redeemed", "loyalty.enrollment", "loyalty.reward_unlocked", "loyalty.tier_changed", "loyalty.qr_earned", "loyalty.checkin_earned", "integration.pos.synced", "integration.pos.pushed", "integration.erp.synced", "integration.erp.pushed", "integration.psp.configured", "protection.authorization.requested", "protection.authorization.granted", "protection.authorization.denied", "protection.action.completed", "protection.action.failed", "protection.device.offline", "protection.exception.raised", "webhook.test"]]],
        "since": NotRequired[str],
        "limit": NotRequired[int],
        "cursor": NotRequired[str],
    },
)

FetchWebhookEventsResponseEventsItem = TypedDict(
    "FetchWebhookEventsResponseEventsItem",
    {
        "id": str,
        "event": str,
        "type": str,
        "timestamp": str,
        "storeId": NotRequired[str],
        "data": Dict[str, Any],
    },
)

FetchWebhookEventsResponse = TypedDict(
    "FetchWebhookEventsResponse",
    {
        "success": Literal[True],
        "events": List["FetchWebhookEventsResponseEventsItem"],
        "nextCursor": NotRequired[str],
    },
)

FetchWebhooksRequest = TypedDict(
    "FetchWebhooksRequest",
    {
        "storeId": NotRequired[str],
    },
)

FetchWebhooksResponseWebhooksItem = TypedDict(
    "FetchWebhooksResponseWebhooksItem",
    {
        "webhookId": str,
        "storeId": NotRequired[str],
        "url": str,
        "events": List[str],
        "enabled": bool,
        "disabledReason": NotRequired[Literal["gone", "failing", "switched_off"]],
        "disabledAt": NotRequired[str],
        "failingSince": NotRequired[str],
        "missedAt": NotRequired[str],
        "oldSecretUntil": NotRequired[str],
        "createdAt": str,
        "updatedAt": str,
    },
)

FetchWebhooksResponse = TypedDict(
    "FetchWebhooksResponse",
    {
        "success": Literal[True],
        "webhooks": List["FetchWebhooksResponseWebhooksItem"],
        "total": int,
    },
)

FetchZonesRequest = TypedDict(
    "FetchZonesRequest",
    {
        "storeId": str,
    },
)

FetchZonesResponseZonesItem = TypedDict(
    "FetchZonesResponseZonesItem",
    {
        "zoneId": str,
        "name": str,
        "url": str,
        "createdAt": str,
    },
)

FetchZonesResponse = TypedDict(
    "FetchZonesResponse",
    {
        "success": Literal[True],
        "zones": List["FetchZonesResponseZonesItem"],
    },
)

FinishOpenIdSignInRequest = TypedDict(
    "FinishOpenIdSignInRequest",
    {
        "flow": str,
        "query": str,
        "account": NotRequired[str],
        "device": NotRequired[str],
    },
)

FinishOpenIdSignInResponse = TypedDict(
    "FinishOpenIdSignInResponse",
    {
        "success": Literal[True],
        "sessionToken": str,
        "state": Literal["active", "pending"],
        "userId": str,
        "role": Literal["owner", "admin", "manager", "associate", "viewer", "platform"],
        "mode": Literal["test", "live"],
        "expiresAt": str,
    },
)

GenerateCodesRequest = TypedDict(
    "GenerateCodesRequest",
    {
        "storeId": str,
        "type": NotRequired[Literal["checkin", "payment", "profile"]],
        "size": NotRequired[int],
    },
)

GenerateCodesResponseCodesItem = TypedDict(
    "GenerateCodesResponseCodesItem",
    {
        "type": Literal["checkin", "payment", "profile"],
        "data": str,
        "imageBase64": str,
    },
)

GenerateCodesResponse = TypedDict(
    "GenerateCodesResponse",
    {
        "success": Literal[True],
        "type": Literal["checkin", "payment", "profile"],
        "codes": List["GenerateCodesResponseCodesItem"],
    },
)

GenerateReceiptQRRequest = TypedDict(
    "GenerateReceiptQRRequest",
    {
        "purchaseId": NotRequired[str],
        "transactionId": NotRequired[str],
        "id": NotRequired[str],
        "number": NotRequired[str],
    },
)

GenerateReceiptQRResponse = TypedDict(
    "GenerateReceiptQRResponse",
    {
        "success": Literal[True],
        "token": str,
        "url": str,
        "expiresAt": str,
        "imageBase64": str,
    },
)

GenerateReceiptWithQRRequest = TypedDict(
    "GenerateReceiptWithQRRequest",
    {
        "purchaseId": NotRequired[str],
        "transactionId": NotRequired[str],
        "id": NotRequired[str],
        "number": NotRequired[str],
    },
)

GenerateReceiptWithQRResponse = TypedDict(
    "GenerateReceiptWithQRResponse",
    {
        "success": Literal[True],
        "token": str,
        "url": str,
        "expiresAt": str,
        "imageBase64": str,
    },
)

GetLoyaltyAnalyticsRequest = TypedDict(
    "GetLoyaltyAnalyticsRequest",
    {
        "programId": NotRequired[str],
        "storeId": NotRequired[str],
        "months": NotRequired[int],
    },
)

GetLoyaltyAnalyticsResponseStamps = TypedDict(
    "GetLoyaltyAnalyticsResponseStamps",
    {
        "issued": float,
        "redeemed": float,
        "expired": float,
        "reversed": float,
        "redemptionRate": float,
    },
)

GetLoyaltyAnalyticsResponseCashback = TypedDict(
    "GetLoyaltyAnalyticsResponseCashback",
    {
        "issued": float,
        "redeemed": float,
        "expired": float,
        "reversed": float,
        "redemptionRate": float,
    },
)

GetLoyaltyAnalyticsResponseMonthlyItemStamps = TypedDict(
    "GetLoyaltyAnalyticsResponseMonthlyItemStamps",
    {
        "issued": float,
        "redeemed": float,
        "expired": float,
        "reversed": float,
    },
)

GetLoyaltyAnalyticsResponseMonthlyItemCashback = TypedDict(
    "GetLoyaltyAnalyticsResponseMonthlyItemCashback",
    {
        "issued": float,
        "redeemed": float,
        "expired": float,
        "reversed": float,
    },
)

GetLoyaltyAnalyticsResponseMonthlyItem = TypedDict(
    "GetLoyaltyAnalyticsResponseMonthlyItem",
    {
        "month": str,
        "newMembers": int,
        "pointsIssued": float,
        "pointsRedeemed": float,
        "pointsExpired": float,
        "pointsReversed": float,
        "redemptions": int,
        "stamps": "GetLoyaltyAnalyticsResponseMonthlyItemStamps",
        "cashback": "GetLoyaltyAnalyticsResponseMonthlyItemCashback",
    },
)

GetLoyaltyAnalyticsResponseProgramsItem = TypedDict(
    "GetLoyaltyAnalyticsResponseProgramsItem",
    {
        "programId": str,
        "name": str,
        "type": Literal["stamps", "points", "cashback", "tier"],
        "members": int,
        "pointsIssued": float,
        "pointsRedeemed": float,
        "pointsExpired": float,
        "pointsReversed": float,
        "redemptions": int,
        "redemptionRate": float,
    },
)

GetLoyaltyAnalyticsResponse = TypedDict(
    "GetLoyaltyAnalyticsResponse",
    {
        "success": Literal[True],
        "members": int,
        "pointsIssued": float,
        "pointsRedeemed": float,
        "pointsExpired": float,
        "pointsReversed": float,
        "redemptions": int,
        "redemptionRate": float,
        "stamps": "GetLoyaltyAnalyticsResponseStamps",
        "cashback": "GetLoyaltyAnalyticsResponseCashback",
        "monthly": List["GetLoyaltyAnalyticsResponseMonthlyItem"],
        "programs": List["GetLoyaltyAnalyticsResponseProgramsItem"],
    },
)

GetLoyaltyProgramRequest = TypedDict(
    "GetLoyaltyProgramRequest",
    {
        "programId": str,
        "userId": NotRequired[str],
    },
)

GetLoyaltyProgramResponseRewardsItem = TypedDict(
    "GetLoyaltyProgramResponseRewardsItem",
    {
        "rewardId": str,
        "name": str,
        "cost": float,
    },
)

GetLoyaltyProgramResponseTiersItem = TypedDict(
    "GetLoyaltyProgramResponseTiersItem",
    {
        "name": str,
        "threshold": float,
    },
)

GetLoyaltyProgramResponseMembership = TypedDict(
    "GetLoyaltyProgramResponseMembership",
    {
        "userId": str,
        "balance": float,
        "tier": str,
        "enrolledAt": NotRequired[str],
    },
)

GetLoyaltyProgramResponse = TypedDict(
    "GetLoyaltyProgramResponse",
    {
        "programId": str,
        "storeId": str,
        "name": str,
        "type": Literal["stamps", "points", "cashback", "tier"],
        "earningMethods": List[Literal["qr_checkin", "store_checkin", "scan_and_go", "click_collect", "till"]],
        "rewards": List["GetLoyaltyProgramResponseRewardsItem"],
        "tiers": List["GetLoyaltyProgramResponseTiersItem"],
        "pointsPerEuro": float,
        "stampsPerVisit": int,
        "cashbackPercent": float,
        "pointsValidMonths": int,
        "isActive": bool,
        "checkInCode": str,
        "createdAt": str,
        "updatedAt": str,
        "success": Literal[True],
        "qrCodeImage": str,
        "membership": NotRequired["GetLoyaltyProgramResponseMembership"],
    },
)

GetLoyaltyProgramsRequest = TypedDict(
    "GetLoyaltyProgramsRequest",
    {
        "isActive": NotRequired[bool],
        "limit": NotRequired[int],
        "offset": NotRequired[int],
        "cursor": NotRequired[str],
    },
)

GetLoyaltyProgramsResponseProgramsItemRewardsItem = TypedDict(
    "GetLoyaltyProgramsResponseProgramsItemRewardsItem",
    {
        "rewardId": str,
        "name": str,
        "cost": float,
    },
)

GetLoyaltyProgramsResponseProgramsItemTiersItem = TypedDict(
    "GetLoyaltyProgramsResponseProgramsItemTiersItem",
    {
        "name": str,
        "threshold": float,
    },
)

GetLoyaltyProgramsResponseProgramsItem = TypedDict(
    "GetLoyaltyProgramsResponseProgramsItem",
    {
        "programId": str,
        "storeId": str,
        "name": str,
        "type": Literal["stamps", "points", "cashback", "tier"],
        "earningMethods": List[Literal["qr_checkin", "store_checkin", "scan_and_go", "click_collect", "till"]],
        "rewards": List["GetLoyaltyProgramsResponseProgramsItemRewardsItem"],
        "tiers": List["GetLoyaltyProgramsResponseProgramsItemTiersItem"],
        "pointsPerEuro": float,
        "stampsPerVisit": int,
        "cashbackPercent": float,
        "pointsValidMonths": int,
        "isActive": bool,
        "checkInCode": str,
        "createdAt": str,
        "updatedAt": str,
    },
)

GetLoyaltyProgramsResponse = TypedDict(
    "GetLoyaltyProgramsResponse",
    {
        "success": Literal[True],
        "programs": List["GetLoyaltyProgramsResponseProgramsItem"],
        "total": int,
        "nextCursor": NotRequired[str],
    },
)

GetLoyaltyWebhookEventsRequest = TypedDict(
    "GetLoyaltyWebhookEventsRequest",
    {
        "storeId": str,
        "url": str,
        "events": List[Literal["*", "checkout.completed", "securityTag.deactivated", "product.created", "product.bulk_imported", "offer.published", "clickcollect.order", "clickcollect.status_changed", "clickcollect.picked_up", "payment.created", "payment.refunded", "loyalty.points_earned", "loyalty.points_redeemed", "loyalty.enrollment", "loyalty.reward_unlocked", "loyalty.tier_changed", "loyalty.qr_earned", "loyalty.checkin_earned", "integration.pos.synced", "integration.pos.pushed", "integration.erp.synced", "integration.erp.pushed", "integration.psp.configured", "protection.authorization.requested", "protection.authorization.granted", "protection.authorization.denied", "protection.action.completed", "protection.action.failed", "protection.device.offline", "protection.exception.raised", "webhook.test"]],
        "secret": str,
    },
)

GetLoyaltyWebhookEventsResponse = TypedDict(
    "GetLoyaltyWebhookEventsResponse",
    {
        "webhookId": str,
        "storeId": NotRequired[str],
        "url": str,
        "events": List[str],
        "enabled": bool,
        "disabledReason": NotRequired[Literal["gone", "failing", "switched_off"]],
        "disabledAt": NotRequired[str],
        "failingSince": NotRequired[str],
        "missedAt": NotRequired[str],
        "oldSecretUntil": NotRequired[str],
        "createdAt": str,
        "updatedAt": str,
        "success": Literal[True],
        "secret": NotRequired[str],
        "warnings": NotRequired[List[str]],
    },
)

GetManagerOffersRequest = TypedDict(
    "GetManagerOffersRequest",
    {
        "status": NotRequired[Literal["active", "expired", "scheduled", "draft"]],
        "from": NotRequired[str],
        "to": NotRequired[str],
        "limit": NotRequired[int],
        "offset": NotRequired[int],
        "cursor": NotRequired[str],
    },
)

GetManagerOffersResponseOffersItem = TypedDict(
    "GetManagerOffersResponseOffersItem",
    {
        "id": str,
        "groupId": str,
        "title": str,
        "description": str,
        "storeIds": List[str],
        "validFrom": str,
        "validTo": str,
        "merchantColor": str,
        "tags": List[str],
        "imageUrl": NotRequired[str],
        "quantity": NotRequired[int],
        "productCount": int,
        "isActive": bool,
        "status": Literal["DRAFT", "ACTIVE", "EXPIRED", "ARCHIVED"],
        "discountPercent": int,
        "scope": Literal["LOCAL", "MULTI_STORE", "CITY_WIDE", "REGIONAL", "NATIONAL"],
        "storeCount": int,
        "clickCount": int,
        "favoritedCount": int,
        "createdAt": str,
    },
)

GetManagerOffersResponse = TypedDict(
    "GetManagerOffersResponse",
    {
        "success": Literal[True],
        "_sandbox": NotRequired[Literal[True]],
        "offers": List["GetManagerOffersResponseOffersItem"],
        "total": int,
        "nextCursor": NotRequired[str],
    },
)

GetReceiptFromCodeRequest = TypedDict(
    "GetReceiptFromCodeRequest",
    {
        "storeId": str,
        "code": str,
    },
)

GetReceiptFromCodeResponse = TypedDict(
    "GetReceiptFromCodeResponse",
    {
        "success": Literal[True],
        "purchaseId": str,
        "token": str,
        "expiresAt": str,
        "releases": bool,
    },
)

GetReceiptFromTokenResponseStoreData = TypedDict(
    "GetReceiptFromTokenResponseStoreData",
    {
        "id": str,
        "name": str,
        "mode": Literal["demo", "live"],
        "address": str,
        "logo": NotRequired[str],
    },
)

GetReceiptFromTokenResponseItemsItem = TypedDict(
    "GetReceiptFromTokenResponseItemsItem",
    {
        "itemLineId": str,
        "name": str,
        "ean": NotRequired[str],
        "priceUnit": int,
        "listPriceUnit": NotRequired[int],
        "quantity": int,
        "vat": Literal[0, 7, 19],
        "totalCent": int,
        "cameBack": NotRequired[int],
        "depositOf": NotRequired[str],
        "barcode": NotRequired[str],
        "weightGrams": NotRequired[int],
        "pricePerKgCent": NotRequired[int],
        "lot": NotRequired[str],
        "expiry": NotRequired[str],
        "serial": NotRequired[str],
        "priceOrigin": NotRequired[Literal["catalogue", "item", "client"]],
        "priceReason": NotRequired[Literal["staff", "markdown", "coupon", "till"]],
    },
)

GetReceiptFromTokenResponseVatBreakdownValue = TypedDict(
    "GetReceiptFromTokenResponseVatBreakdownValue",
    {
        "net": int,
        "tax": int,
    },
)

GetReceiptFromTokenResponseRefundsItemLinesItem = TypedDict(
    "GetReceiptFromTokenResponseRefundsItemLinesItem",
    {
        "itemLineId": str,
        "quantity": int,
        "part": NotRequired[float],
    },
)

GetReceiptFromTokenResponseRefundsItem = TypedDict(
    "GetReceiptFromTokenResponseRefundsItem",
    {
        "refundId": str,
        "kind": Literal["whole", "part", "late"],
        "status": Literal["pending", "done", "failed"],
        "inDoubt": NotRequired[Literal[True]],
        "outside": NotRequired[Literal["refund", "dispute"]],
        "lines": NotRequired[List["GetReceiptFromTokenResponseRefundsItemLinesItem"]],
        "amountCent": int,
        "createdAt": int,
        "completedAt": NotRequired[int],
    },
)

GetReceiptFromTokenResponseTill = TypedDict(
    "GetReceiptFromTokenResponseTill",
    {
        "saleId": str,
        "tillId": NotRequired[str],
        "series": NotRequired[str],
    },
)

GetReceiptFromTokenResponse = TypedDict(
    "GetReceiptFromTokenResponse",
    {
        "id": str,
        "sessionId": NotRequired[str],
        "userId": NotRequired[str],
        "checkoutSessionId": NotRequired[str],
        "storeData": "GetReceiptFromTokenResponseStoreData",
        "items": List["GetReceiptFromTokenResponseItemsItem"],
        "currency": str,
        "subtotalCent": int,
        "vatBreakdown": Dict[str, "GetReceiptFromTokenResponseVatBreakdownValue"],
        "totalVatCent": int,
        "totalCent": int,
        "refundedCent": int,
        "refunds": List["GetReceiptFromTokenResponseRefundsItem"],
        "status": Literal["CREATED", "PENDING_PAYMENT", "SUCCESS", "UNLOADED", "CANCELLED"],
        "refundStatus": NotRequired[Literal["pending", "done", "failed"]],
        "createdAt": int,
        "completedAt": NotRequired[int],
        "receiptUrl": NotRequired[str],
        "receiptQrCode": NotRequired[str],
        "tse": Dict[str, str],
        "till": NotRequired["GetReceiptFromTokenResponseTill"],
        "fiscal": NotRequired[str],
        "securityTagMode": NotRequired[Literal["none", "manual", "station", "rfid"]],
        "securityTagStatus": NotRequired[Literal["pending", "deactivated"]],
        "securityTagHint": NotRequired[str],
        "success": Literal[True],
    },
)

GetStoreLoyaltyProgramsRequest = TypedDict(
    "GetStoreLoyaltyProgramsRequest",
    {
        "storeId": str,
    },
)

GetStoreLoyaltyProgramsResponseProgramsItemRewardsItem = TypedDict(
    "GetStoreLoyaltyProgramsResponseProgramsItemRewardsItem",
    {
        "rewardId": str,
        "name": str,
        "cost": float,
    },
)

GetStoreLoyaltyProgramsResponseProgramsItemTiersItem = TypedDict(
    "GetStoreLoyaltyProgramsResponseProgramsItemTiersItem",
    {
        "name": str,
        "threshold": float,
    },
)

GetStoreLoyaltyProgramsResponseProgramsItem = TypedDict(
    "GetStoreLoyaltyProgramsResponseProgramsItem",
    {
        "programId": str,
        "storeId": str,
        "name": str,
        "type": Literal["stamps", "points", "cashback", "tier"],
        "earningMethods": List[Literal["qr_checkin", "store_checkin", "scan_and_go", "click_collect", "till"]],
        "rewards": List["GetStoreLoyaltyProgramsResponseProgramsItemRewardsItem"],
        "tiers": List["GetStoreLoyaltyProgramsResponseProgramsItemTiersItem"],
        "pointsPerEuro": float,
        "stampsPerVisit": int,
        "cashbackPercent": float,
        "pointsValidMonths": int,
        "isActive": bool,
        "checkInCode": str,
        "createdAt": str,
        "updatedAt": str,
    },
)

GetStoreLoyaltyProgramsResponse = TypedDict(
    "GetStoreLoyaltyProgramsResponse",
    {
        "success": Literal[True],
        "programs": List["GetStoreLoyaltyProgramsResponseProgramsItem"],
        "total": int,
        "nextCursor": NotRequired[str],
    },
)

ImportProductsForm = TypedDict(
    "ImportProductsForm",
    {
        "storeId": str,
        "file": bytes,
        "dryRun": NotRequired[Union[bool, Literal["true", "false"]]],
    },
)

ImportProductsResponseErrorsItem = TypedDict(
    "ImportProductsResponseErrorsItem",
    {
        "index": int,
        "row": NotRequired[int],
        "ean": str,
        "field": str,
        "code": str,
        "message": str,
    },
)

ImportProductsResponse = TypedDict(
    "ImportProductsResponse",
    {
        "success": Literal[True],
        "imported": int,
        "updated": int,
        "errors": List["ImportProductsResponseErrorsItem"],
        "errorCount": int,
        "warnings": NotRequired[List[str]],
        "rows": int,
        "dryRun": bool,
    },
)

InsertProductRequestNutrition = TypedDict(
    "InsertProductRequestNutrition",
    {
        "calories": NotRequired[float],
        "fat": NotRequired[float],
        "saturatedFat": NotRequired[float],
        "carbohydrates": NotRequired[float],
        "sugar": NotRequired[float],
        "protein": NotRequired[float],
        "fiber": NotRequired[float],
        "salt": NotRequired[float],
        "nutriScore": NotRequired[Literal["A", "B", "C", "D", "E"]],
        "per": NotRequired[Literal["100g", "100ml"]],
        "source": NotRequired[Literal["merchant", "reference", "community"]],
        "confidence": NotRequired[float],
    },
)

InsertProductRequestFlags = TypedDict(
    "InsertProductRequestFlags",
    {
        "requiresHumanVerification": bool,
    },
)

InsertProductRequest = TypedDict(
    "InsertProductRequest",
    {
        "storeId": str,
        "ean": NotRequired[str],
        "barcode": NotRequired[str],
        "name": str,
        "price": float,
        "vat": Literal[7, 19],
        "oldPrice": NotRequired[float],
        "category": NotRequired[str],
        "unit": NotRequired[str],
        "brand": NotRequired[str],
        "description": NotRequired[str],
        "imageUrl": NotRequired[str],
        "weight": NotRequired[str],
        "isOrganic": NotRequired[bool],
        "isVegan": NotRequired[bool],
        "allergens": NotRequired[List[str]],
        "deposit": NotRequired[float],
        "depositVat": NotRequired[Literal[7, 19]],
        "nutrition": NotRequired["InsertProductRequestNutrition"],
        "tagged": NotRequired[bool],
        "flags": NotRequired["InsertProductRequestFlags"],
    },
)

InsertProductResponseNutrition = TypedDict(
    "InsertProductResponseNutrition",
    {
        "calories": NotRequired[float],
        "fat": NotRequired[float],
        "saturatedFat": NotRequired[float],
        "carbohydrates": NotRequired[float],
        "sugar": NotRequired[float],
        "protein": NotRequired[float],
        "fiber": NotRequired[float],
        "salt": NotRequired[float],
        "nutriScore": NotRequired[Literal["A", "B", "C", "D", "E"]],
        "per": Literal["100g", "100ml"],
        "source": NotRequired[Literal["merchant", "reference", "community"]],
        "confidence": NotRequired[float],
    },
)

InsertProductResponseMedia = TypedDict(
    "InsertProductResponseMedia",
    {
        "snapshot": str,
    },
)

InsertProductResponseFlags = TypedDict(
    "InsertProductResponseFlags",
    {
        "requiresHumanVerification": bool,
    },
)

InsertProductResponse = TypedDict(
    "InsertProductResponse",
    {
        "productId": str,
        "ean": str,
        "name": str,
        "price": float,
        "oldPrice": NotRequired[float],
        "vat": Literal[7, 19],
        "storeId": NotRequired[str],
        "category": NotRequired[str],
        "unit": NotRequired[str],
        "brand": NotRequired[str],
        "description": NotRequired[str],
        "imageUrl": NotRequired[str],
        "weight": NotRequired[str],
        "isOrganic": NotRequired[bool],
        "isVegan": NotRequired[bool],
        "allergens": NotRequired[List[str]],
        "deposit": NotRequired[float],
        "depositVat": NotRequired[Literal[7, 19]],
        "nutrition": NotRequired["InsertProductResponseNutrition"],
        "media": NotRequired["InsertProductResponseMedia"],
        "tagged": bool,
        "flags": "InsertProductResponseFlags",
        "fromPos": bool,
        "posProductId": str,
        "nameLower": str,
        "brandLower": NotRequired[str],
        "createdAt": str,
        "updatedAt": str,
        "success": Literal[True],
        "warnings": NotRequired[List[str]],
    },
)

InsertStoreRequestName = TypedDict(
    "InsertStoreRequestName",
    {
        "legal": NotRequired[str],
        "trading": NotRequired[str],
    },
)

InsertStoreRequestAddress = TypedDict(
    "InsertStoreRequestAddress",
    {
        "street": NotRequired[str],
        "city": NotRequired[str],
        "zip": NotRequired[str],
        "postalCode": NotRequired[str],
        "country": NotRequired[str],
        "countryCode": NotRequired[str],
    },
)

InsertStoreRequestCoordinates = TypedDict(
    "InsertStoreRequestCoordinates",
    {
        "lat": NotRequired[float],
        "lng": NotRequired[float],
        "latitude": NotRequired[float],
        "longitude": NotRequired[float],
    },
)

InsertStoreRequestMedia = TypedDict(
    "InsertStoreRequestMedia",
    {
        "logo": NotRequired[str],
        "cover": NotRequired[str],
    },
)

InsertStoreRequestSocial = TypedDict(
    "InsertStoreRequestSocial",
    {
        "instagram": NotRequired[str],
        "facebook": NotRequired[str],
        "tiktok": NotRequired[str],
    },
)

InsertStoreRequestOpeningHours = TypedDict(
    "InsertStoreRequestOpeningHours",
    {
        "monday": NotRequired[str],
        "tuesday": NotRequired[str],
        "wednesday": NotRequired[str],
        "thursday": NotRequired[str],
        "friday": NotRequired[str],
        "saturday": NotRequired[str],
        "sunday": NotRequired[str],
    },
)

InsertStoreRequest = TypedDict(
    "InsertStoreRequest",
    {
        "companyName": NotRequired[str],
        "tradingName": NotRequired[str],
        "name": NotRequired["InsertStoreRequestName"],
        "address": NotRequired["InsertStoreRequestAddress"],
        "coordinates": NotRequired["InsertStoreRequestCoordinates"],
        "phone": NotRequired[str],
        "email": NotRequired[str],
        "website": NotRequired[str],
        "media": NotRequired["InsertStoreRequestMedia"],
        "social": NotRequired["InsertStoreRequestSocial"],
        "openingHours": NotRequired["InsertStoreRequestOpeningHours"],
        "pspAccountId": NotRequired[str],
        "hasScanAndGo": NotRequired[bool],
        "hasOffers": NotRequired[bool],
        "securityTagMode": NotRequired[Literal["none", "manual", "station", "rfid"]],
        "securityTagHint": NotRequired[str],
        "protectionTechnology": NotRequired[Literal["am", "rf", "uhf_rfid", "hf_nfc", "mechanical_lock"]],
        "deviceType": NotRequired[Literal["pos_deactivator", "self_checkout_detacher", "exit_gate", "handheld_reader", "cabinet_unlocker"]],
        "workflowType": NotRequired[Literal["staff_assisted", "self_service", "automatic_exit", "pos_integrated"]],
        "inStoreCodes": NotRequired[List[str]],
        "gln": NotRequired[str],
        "package": NotRequired[str],
    },
)

InsertStoreResponse1Address = TypedDict(
    "InsertStoreResponse1Address",
    {
        "street": str,
        "city": str,
        "zip": str,
        "country": str,
    },
)

InsertStoreResponse1Coordinates = TypedDict(
    "InsertStoreResponse1Coordinates",
    {
        "lat": float,
        "lng": float,
    },
)

InsertStoreResponse1 = TypedDict(
    "InsertStoreResponse1",
    {
        "storeId": str,
        "companyName": str,
        "tradingName": str,
        "address": "InsertStoreResponse1Address",
        "coordinates": NotRequired["InsertStoreResponse1Coordinates"],
        "hasScanAndGo": bool,
        "package": Literal["DISCOVER", "ASSIST", "GO", "GROW", "PRIME"],
        "securityTagMode": Literal["none", "manual", "station", "rfid"],
        "securityTagHint": NotRequired[str],
        "protectionTechnology": NotRequired[Literal["am", "rf", "uhf_rfid", "hf_nfc", "mechanical_lock"]],
        "deviceType": NotRequired[Literal["pos_deactivator", "self_checkout_detacher", "exit_gate", "handheld_reader", "cabinet_unlocker"]],
        "workflowType": NotRequired[Literal["staff_assisted", "self_service", "automatic_exit", "pos_integrated"]],
        "gln": NotRequired[str],
        "inStoreCodes": NotRequired[List[str]],
        "success": Literal[True],
    },
)

InsertStoreResponse2 = TypedDict(
    "InsertStoreResponse2",
    {
        "success": Literal[True],
        "registrationId": str,
        "status": Literal["pending"],
    },
)

InviteUserRequest = TypedDict(
    "InviteUserRequest",
    {
        "email": str,
        "name": NotRequired[str],
        "role": Literal["owner", "admin", "manager", "associate", "viewer"],
        "storeIds": NotRequired[List[str]],
        "sandboxOnly": NotRequired[bool],
    },
)

InviteUserResponse = TypedDict(
    "InviteUserResponse",
    {
        "success": Literal[True],
        "userId": str,
        "url": str,
        "expiresAt": str,
        "email": str,
        "role": Literal["owner", "admin", "manager", "associate", "viewer"],
        "storeIds": List[str],
        "sandboxOnly": bool,
    },
)

IssueLoyaltyCardRequest = TypedDict(
    "IssueLoyaltyCardRequest",
    {
        "programId": str,
        "userId": str,
        "renew": NotRequired[bool],
    },
)

IssueLoyaltyCardResponse = TypedDict(
    "IssueLoyaltyCardResponse",
    {
        "success": Literal[True],
        "programId": str,
        "userId": str,
        "cardCode": str,
        "url": str,
        "imageBase64": str,
        "enrolled": bool,
    },
)

LoyaltyCheckInRequest = TypedDict(
    "LoyaltyCheckInRequest",
    {
        "programId": str,
        "userId": str,
        "method": Literal["qr_checkin", "store_checkin"],
        "code": NotRequired[str],
        "lat": NotRequired[float],
        "lng": NotRequired[float],
        "latitude": NotRequired[float],
        "longitude": NotRequired[float],
    },
)

LoyaltyCheckInResponse = TypedDict(
    "LoyaltyCheckInResponse",
    {
        "success": Literal[True],
        "programId": str,
        "userId": str,
        "amount": float,
        "newBalance": float,
        "tier": str,
        "method": Literal["qr_checkin", "store_checkin"],
        "enrolled": bool,
        "nextCheckInAt": str,
    },
)

MarkPurchaseCancelledRequest = TypedDict(
    "MarkPurchaseCancelledRequest",
    {
        "purchaseId": NotRequired[str],
        "transactionId": NotRequired[str],
        "id": NotRequired[str],
        "reason": NotRequired[str],
    },
)

MarkPurchaseCancelledResponseItemsItem = TypedDict(
    "MarkPurchaseCancelledResponseItemsItem",
    {
        "itemLineId": str,
        "productId": NotRequired[str],
        "name": str,
        "price": float,
        "paid": float,
        "listPrice": NotRequired[float],
        "quantity": int,
        "cameBack": NotRequired[int],
        "depositOf": NotRequired[str],
        "weightGrams": NotRequired[int],
        "priceOrigin": NotRequired[Literal["catalogue", "item", "client"]],
        "priceReason": NotRequired[Literal["staff", "markdown", "coupon", "till"]],
    },
)

MarkPurchaseCancelledResponseRefundsItemLinesItem = TypedDict(
    "MarkPurchaseCancelledResponseRefundsItemLinesItem",
    {
        "itemLineId": str,
        "quantity": int,
        "part": NotRequired[float],
    },
)

MarkPurchaseCancelledResponseRefundsItem = TypedDict(
    "MarkPurchaseCancelledResponseRefundsItem",
    {
        "refundId": str,
        "kind": Literal["whole", "part", "late"],
        "status": Literal["pending", "done", "failed"],
        "inDoubt": NotRequired[Literal[True]],
        "outside": NotRequired[Literal["refund", "dispute"]],
        "lines": NotRequired[List["MarkPurchaseCancelledResponseRefundsItemLinesItem"]],
        "amount": float,
        "requestedBy": NotRequired[str],
        "requestedByName": NotRequired[str],
        "createdAt": str,
        "completedAt": NotRequired[str],
    },
)

MarkPurchaseCancelledResponse = TypedDict(
    "MarkPurchaseCancelledResponse",
    {
        "transactionId": str,
        "storeId": str,
        "items": List["MarkPurchaseCancelledResponseItemsItem"],
        "total": float,
        "refunded": float,
        "refunds": List["MarkPurchaseCancelledResponseRefundsItem"],
        "currency": str,
        "timestamp": str,
        "status": Literal["CREATED", "PENDING_PAYMENT", "SUCCESS", "UNLOADED", "CANCELLED"],
        "refundStatus": NotRequired[Literal["pending", "done", "failed"]],
        "awaitingApproval": NotRequired[bool],
        "approvalReason": NotRequired[Literal["age", "spot_check"]],
        "securityTagMode": NotRequired[Literal["none", "manual", "station", "rfid"]],
        "securityTagStatus": NotRequired[Literal["pending", "deactivated"]],
        "securityTagHint": NotRequired[str],
        "receipt": "TransactionData",
        "success": Literal[True],
    },
)

MoveReceiptHomeRequest = TypedDict(
    "MoveReceiptHomeRequest",
    {
        "storeId": str,
        "home": str,
    },
)

MoveReceiptHomeResponse = TypedDict(
    "MoveReceiptHomeResponse",
    {
        "success": Literal[True],
        "home": str,
        "homeEpoch": int,
    },
)

ProcessPaymentRequest = TypedDict(
    "ProcessPaymentRequest",
    {
        "purchaseId": NotRequired[str],
        "transactionId": NotRequired[str],
        "id": NotRequired[str],
        "method": NotRequired[str],
    },
)

ProcessPaymentResponse = TypedDict(
    "ProcessPaymentResponse",
    {
        "success": Literal[True],
        "transactionId": str,
        "status": Literal["CREATED", "PENDING_PAYMENT", "SUCCESS", "UNLOADED", "CANCELLED"],
        "checkoutUrl": str,
        "paymentId": NotRequired[str],
        "provider": NotRequired[str],
        "amount": float,
        "currency": str,
    },
)

ProductNutrition = TypedDict(
    "ProductNutrition",
    {
        "calories": NotRequired[float],
        "fat": NotRequired[float],
        "saturatedFat": NotRequired[float],
        "carbohydrates": NotRequired[float],
        "sugar": NotRequired[float],
        "protein": NotRequired[float],
        "fiber": NotRequired[float],
        "salt": NotRequired[float],
        "nutriScore": NotRequired[Literal["A", "B", "C", "D", "E"]],
        "per": Literal["100g", "100ml"],
        "source": NotRequired[Literal["merchant", "reference", "community"]],
        "confidence": NotRequired[float],
    },
)

ProductMedia = TypedDict(
    "ProductMedia",
    {
        "snapshot": str,
    },
)

ProductFlags = TypedDict(
    "ProductFlags",
    {
        "requiresHumanVerification": bool,
    },
)

Product = TypedDict(
    "Product",
    {
        "productId": str,
        "ean": str,
        "name": str,
        "price": float,
        "oldPrice": NotRequired[float],
        "vat": Literal[7, 19],
        "storeId": NotRequired[str],
        "category": NotRequired[str],
        "unit": NotRequired[str],
        "brand": NotRequired[str],
        "description": NotRequired[str],
        "imageUrl": NotRequired[str],
        "weight": NotRequired[str],
        "isOrganic": NotRequired[bool],
        "isVegan": NotRequired[bool],
        "allergens": NotRequired[List[str]],
        "deposit": NotRequired[float],
        "depositVat": NotRequired[Literal[7, 19]],
        "nutrition": NotRequired["ProductNutrition"],
        "media": NotRequired["ProductMedia"],
        "tagged": bool,
        "flags": "ProductFlags",
        "fromPos": bool,
        "posProductId": str,
        "nameLower": str,
        "brandLower": NotRequired[str],
        "createdAt": str,
        "updatedAt": str,
    },
)

PurchaseItemsItem = TypedDict(
    "PurchaseItemsItem",
    {
        "itemLineId": str,
        "productId": NotRequired[str],
        "name": str,
        "price": float,
        "paid": float,
        "listPrice": NotRequired[float],
        "quantity": int,
        "cameBack": NotRequired[int],
        "depositOf": NotRequired[str],
        "weightGrams": NotRequired[int],
        "priceOrigin": NotRequired[Literal["catalogue", "item", "client"]],
        "priceReason": NotRequired[Literal["staff", "markdown", "coupon", "till"]],
    },
)

PurchaseRefundsItemLinesItem = TypedDict(
    "PurchaseRefundsItemLinesItem",
    {
        "itemLineId": str,
        "quantity": int,
        "part": NotRequired[float],
    },
)

PurchaseRefundsItem = TypedDict(
    "PurchaseRefundsItem",
    {
        "refundId": str,
        "kind": Literal["whole", "part", "late"],
        "status": Literal["pending", "done", "failed"],
        "inDoubt": NotRequired[Literal[True]],
        "outside": NotRequired[Literal["refund", "dispute"]],
        "lines": NotRequired[List["PurchaseRefundsItemLinesItem"]],
        "amount": float,
        "requestedBy": NotRequired[str],
        "requestedByName": NotRequired[str],
        "createdAt": str,
        "completedAt": NotRequired[str],
    },
)

Purchase = TypedDict(
    "Purchase",
    {
        "transactionId": str,
        "storeId": str,
        "items": List["PurchaseItemsItem"],
        "total": float,
        "refunded": float,
        "refunds": List["PurchaseRefundsItem"],
        "currency": str,
        "timestamp": str,
        "status": Literal["CREATED", "PENDING_PAYMENT", "SUCCESS", "UNLOADED", "CANCELLED"],
        "refundStatus": NotRequired[Literal["pending", "done", "failed"]],
        "awaitingApproval": NotRequired[bool],
        "approvalReason": NotRequired[Literal["age", "spot_check"]],
        "securityTagMode": NotRequired[Literal["none", "manual", "station", "rfid"]],
        "securityTagStatus": NotRequired[Literal["pending", "deactivated"]],
        "securityTagHint": NotRequired[str],
        "receipt": "TransactionData",
    },
)

PushToERPRequest = TypedDict(
    "PushToERPRequest",
    {
        "system": Literal["odoo", "erpnext", "businesscentral", "sapb1", "generic", "custom"],
        "storeId": NotRequired[str],
        "dataType": str,
        "records": List[Dict[str, Any]],
        "credentials": NotRequired[Dict[str, Union[str, Dict[str, str]]]],
    },
)

PushToERPResponseErrorsItem = TypedDict(
    "PushToERPResponseErrorsItem",
    {
        "dataType": str,
        "index": int,
        "ean": str,
        "externalId": str,
        "field": str,
        "code": str,
        "message": str,
    },
)

PushToERPResponse = TypedDict(
    "PushToERPResponse",
    {
        "success": Literal[True],
        "_sandbox": NotRequired[Literal[True]],
        "system": str,
        "pushed": int,
        "errors": List["PushToERPResponseErrorsItem"],
        "warnings": NotRequired[List[str]],
    },
)

PushToPOSRequest = TypedDict(
    "PushToPOSRequest",
    {
        "system": Literal["shopify", "square", "lightspeed", "clover", "sumup", "generic", "custom"],
        "storeId": NotRequired[str],
        "dataType": str,
        "records": List[Dict[str, Any]],
        "credentials": NotRequired[Dict[str, Union[str, Dict[str, str]]]],
    },
)

PushToPOSResponseErrorsItem = TypedDict(
    "PushToPOSResponseErrorsItem",
    {
        "dataType": str,
        "index": int,
        "ean": str,
        "externalId": str,
        "field": str,
        "code": str,
        "message": str,
    },
)

PushToPOSResponse = TypedDict(
    "PushToPOSResponse",
    {
        "success": Literal[True],
        "_sandbox": NotRequired[Literal[True]],
        "system": str,
        "pushed": int,
        "errors": List["PushToPOSResponseErrorsItem"],
        "warnings": NotRequired[List[str]],
    },
)

RecallProductsRequest = TypedDict(
    "RecallProductsRequest",
    {
        "storeIds": NotRequired[List[str]],
        "ean": str,
        "lot": NotRequired[str],
        "expiry": NotRequired[str],
        "serial": NotRequired[str],
        "reason": str,
    },
)

RecallProductsResponse = TypedDict(
    "RecallProductsResponse",
    {
        "recallId": str,
        "state": Literal["active", "ended"],
        "storeIds": NotRequired[List[str]],
        "ean": str,
        "name": str,
        "lot": NotRequired[str],
        "expiry": NotRequired[str],
        "serial": NotRequired[str],
        "reason": str,
        "startedAt": str,
        "endedAt": NotRequired[str],
        "items": NotRequired[int],
        "soldItems": NotRequired[int],
        "success": Literal[True],
    },
)

RecordEngagementRequest = TypedDict(
    "RecordEngagementRequest",
    {
        "type": Literal["offer_click", "offer_favorite", "offer_unfavorite", "profile_view", "follow", "unfollow", "message"],
        "storeId": str,
        "offerId": NotRequired[str],
        "userId": NotRequired[str],
    },
)

RecordEngagementResponse = TypedDict(
    "RecordEngagementResponse",
    {
        "success": Literal[True],
        "recorded": bool,
    },
)

RecordReturnsRequestReturnsItem1LinesItem = TypedDict(
    "RecordReturnsRequestReturnsItem1LinesItem",
    {
        "lineId": str,
        "quantity": NotRequired[float],
        "epcs": NotRequired[List[str]],
        "tagUids": NotRequired[List[str]],
        "tagIds": NotRequired[List[str]],
    },
)

RecordReturnsRequestReturnsItem1 = TypedDict(
    "RecordReturnsRequestReturnsItem1",
    {
        "returnId": str,
        "saleId": NotRequired[str],
        "tillId": NotRequired[str],
        "series": NotRequired[str],
        "purchaseId": NotRequired[str],
        "receipt": NotRequired[str],
        "code": NotRequired[str],
        "lines": NotRequired[List["RecordReturnsRequestReturnsItem1LinesItem"]],
        "epcs": NotRequired[List[str]],
        "tagUids": NotRequired[List[str]],
        "tagIds": NotRequired[List[str]],
        "resellable": NotRequired[bool],
        "occurredAt": NotRequired[str],
        "reason": NotRequired[str],
    },
)

RecordReturnsRequest = TypedDict(
    "RecordReturnsRequest",
    {
        "storeId": str,
        "returns": List[Union["RecordReturnsRequestReturnsItem1", Dict[str, Any]]],
    },
)

RecordReturnsResponseResultsItemItemsItem = TypedDict(
    "RecordReturnsResponseResultsItemItemsItem",
    {
        "tag": str,
        "itemStatus": NotRequired[Literal["sellable", "paid", "reserved_bopis", "picked_up", "returned", "transfer_in_transit", "cancelled", "exception_hold"]],
    },
)

RecordReturnsResponseResultsItem = TypedDict(
    "RecordReturnsResponseResultsItem",
    {
        "returnId": str,
        "purchaseId": NotRequired[str],
        "amountCent": NotRequired[int],
        "items": List["RecordReturnsResponseResultsItemItemsItem"],
        "waiting": NotRequired[Literal[True]],
    },
)

RecordReturnsResponseErrorsItem = TypedDict(
    "RecordReturnsResponseErrorsItem",
    {
        "index": int,
        "saleId": NotRequired[str],
        "error": str,
        "code": str,
        "field": NotRequired[str],
    },
)

RecordReturnsResponse = TypedDict(
    "RecordReturnsResponse",
    {
        "success": Literal[True],
        "recorded": int,
        "repeated": int,
        "results": List["RecordReturnsResponseResultsItem"],
        "errors": List["RecordReturnsResponseErrorsItem"],
    },
)

RecordSalesRequestSalesItem1LinesItem = TypedDict(
    "RecordSalesRequestSalesItem1LinesItem",
    {
        "lineId": NotRequired[str],
        "ean": NotRequired[str],
        "productId": NotRequired[str],
        "name": NotRequired[str],
        "quantity": float,
        "priceUnit": int,
        "vat": Literal[0, 7, 19],
        "epcs": NotRequired[List[str]],
        "tagUids": NotRequired[List[str]],
        "tagIds": NotRequired[List[str]],
    },
)

RecordSalesRequestSalesItem1 = TypedDict(
    "RecordSalesRequestSalesItem1",
    {
        "saleId": str,
        "tillId": NotRequired[str],
        "series": NotRequired[str],
        "state": NotRequired[Literal["open", "paid", "void"]],
        "version": NotRequired[int],
        "occurredAt": str,
        "totalCent": NotRequired[int],
        "receiptCodes": NotRequired[List[str]],
        "fiscal": NotRequired[str],
        "lines": List["RecordSalesRequestSalesItem1LinesItem"],
        "userId": NotRequired[str],
        "loyaltyCard": NotRequired[str],
    },
)

RecordSalesRequest = TypedDict(
    "RecordSalesRequest",
    {
        "storeId": str,
        "sales": List[Union["RecordSalesRequestSalesItem1", Dict[str, Any]]],
    },
)

RecordSalesResponseResultsItemItemsItem = TypedDict(
    "RecordSalesResponseResultsItemItemsItem",
    {
        "lineId": str,
        "tag": str,
        "itemStatus": NotRequired[Literal["sellable", "paid", "reserved_bopis", "picked_up", "returned", "transfer_in_transit", "cancelled", "exception_hold"]],
    },
)

RecordSalesResponseResultsItemWarningsItem = TypedDict(
    "RecordSalesResponseResultsItemWarningsItem",
    {
        "code": str,
        "message": str,
        "lineId": NotRequired[str],
        "tag": NotRequired[str],
    },
)

RecordSalesResponseResultsItem = TypedDict(
    "RecordSalesResponseResultsItem",
    {
        "saleId": str,
        "purchaseId": NotRequired[str],
        "receiptToken": NotRequired[str],
        "items": List["RecordSalesResponseResultsItemItemsItem"],
        "warnings": List["RecordSalesResponseResultsItemWarningsItem"],
    },
)

RecordSalesResponseErrorsItem = TypedDict(
    "RecordSalesResponseErrorsItem",
    {
        "index": int,
        "saleId": NotRequired[str],
        "error": str,
        "code": str,
        "field": NotRequired[str],
    },
)

RecordSalesResponse = TypedDict(
    "RecordSalesResponse",
    {
        "success": Literal[True],
        "recorded": int,
        "repeated": int,
        "results": List["RecordSalesResponseResultsItem"],
        "errors": List["RecordSalesResponseErrorsItem"],
    },
)

RedeemLoyaltyPointsRequest = TypedDict(
    "RedeemLoyaltyPointsRequest",
    {
        "programId": str,
        "userId": NotRequired[str],
        "cardCode": NotRequired[str],
        "rewardId": NotRequired[str],
        "amount": NotRequired[float],
    },
)

RedeemLoyaltyPointsResponse = TypedDict(
    "RedeemLoyaltyPointsResponse",
    {
        "success": Literal[True],
        "programId": str,
        "userId": str,
        "amount": float,
        "newBalance": float,
        "tier": str,
        "transactionId": str,
        "rewardId": NotRequired[str],
        "rewardName": NotRequired[str],
    },
)

RedeemProtectionAuthorizationRequest = TypedDict(
    "RedeemProtectionAuthorizationRequest",
    {
        "authorizationToken": NotRequired[str],
        "replayProtectedNonce": NotRequired[str],
        "deviceId": str,
        "redemptionId": str,
        "step": NotRequired[int],
        "occurredAt": NotRequired[str],
        "outcome": NotRequired[Literal["confirmed", "failed", "unknown"]],
    },
)

RedeemProtectionAuthorizationResponse = TypedDict(
    "RedeemProtectionAuthorizationResponse",
    {
        "success": Literal[True],
        "authorizationState": Literal["issued", "redeemed", "expired", "revoked"],
        "redeemedAt": str,
        "remaining": int,
        "eventId": str,
    },
)

RedeliverWebhookRequest = TypedDict(
    "RedeliverWebhookRequest",
    {
        "deliveryId": str,
    },
)

RedeliverWebhookResponseAttemptsItem = TypedDict(
    "RedeliverWebhookResponseAttemptsItem",
    {
        "attempt": int,
        "at": str,
        "durationMs": int,
        "status": NotRequired[int],
        "error": NotRequired[str],
        "answer": NotRequired[str],
    },
)

RedeliverWebhookResponse = TypedDict(
    "RedeliverWebhookResponse",
    {
        "deliveryId": str,
        "webhookId": str,
        "eventId": str,
        "event": str,
        "storeId": NotRequired[str],
        "status": Literal["pending", "delivered", "failed"],
        "attempts": List["RedeliverWebhookResponseAttemptsItem"],
        "nextAttemptAt": NotRequired[str],
        "createdAt": str,
        "finishedAt": NotRequired[str],
        "success": Literal[True],
    },
)

RefundPaymentRequestLinesItem = TypedDict(
    "RefundPaymentRequestLinesItem",
    {
        "itemLineId": str,
        "quantity": NotRequired[int],
        "epcs": NotRequired[List[str]],
        "tagUids": NotRequired[List[str]],
        "tagIds": NotRequired[List[str]],
    },
)

RefundPaymentRequest = TypedDict(
    "RefundPaymentRequest",
    {
        "purchaseId": NotRequired[str],
        "transactionId": NotRequired[str],
        "id": NotRequired[str],
        "amount": NotRequired[float],
        "lines": NotRequired[List["RefundPaymentRequestLinesItem"]],
        "refundId": NotRequired[str],
        "notPaid": NotRequired[Literal[True]],
        "reason": NotRequired[str],
        "confirmedBy": NotRequired[str],
    },
)

RefundPaymentResponseItemsItem = TypedDict(
    "RefundPaymentResponseItemsItem",
    {
        "itemLineId": str,
        "productId": NotRequired[str],
        "name": str,
        "price": float,
        "paid": float,
        "listPrice": NotRequired[float],
        "quantity": int,
        "cameBack": NotRequired[int],
        "depositOf": NotRequired[str],
        "weightGrams": NotRequired[int],
        "priceOrigin": NotRequired[Literal["catalogue", "item", "client"]],
        "priceReason": NotRequired[Literal["staff", "markdown", "coupon", "till"]],
    },
)

RefundPaymentResponseRefundsItemLinesItem = TypedDict(
    "RefundPaymentResponseRefundsItemLinesItem",
    {
        "itemLineId": str,
        "quantity": int,
        "part": NotRequired[float],
    },
)

RefundPaymentResponseRefundsItem = TypedDict(
    "RefundPaymentResponseRefundsItem",
    {
        "refundId": str,
        "kind": Literal["whole", "part", "late"],
        "status": Literal["pending", "done", "failed"],
        "inDoubt": NotRequired[Literal[True]],
        "outside": NotRequired[Literal["refund", "dispute"]],
        "lines": NotRequired[List["RefundPaymentResponseRefundsItemLinesItem"]],
        "amount": float,
        "requestedBy": NotRequired[str],
        "requestedByName": NotRequired[str],
        "createdAt": str,
        "completedAt": NotRequired[str],
    },
)

RefundPaymentResponseRefundLinesItem = TypedDict(
    "RefundPaymentResponseRefundLinesItem",
    {
        "itemLineId": str,
        "quantity": int,
        "part": NotRequired[float],
    },
)

RefundPaymentResponseRefund = TypedDict(
    "RefundPaymentResponseRefund",
    {
        "refundId": str,
        "amount": float,
        "currency": str,
        "status": Literal["pending", "done", "failed"],
        "lines": NotRequired[List["RefundPaymentResponseRefundLinesItem"]],
    },
)

RefundPaymentResponse = TypedDict(
    "RefundPaymentResponse",
    {
        "transactionId": str,
        "storeId": str,
        "items": List["RefundPaymentResponseItemsItem"],
        "total": float,
        "refunded": float,
        "refunds": List["RefundPaymentResponseRefundsItem"],
        "currency": str,
        "timestamp": str,
        "status": Literal["CREATED", "PENDING_PAYMENT", "SUCCESS", "UNLOADED", "CANCELLED"],
        "refundStatus": NotRequired[Literal["pending", "done", "failed"]],
        "awaitingApproval": NotRequired[bool],
        "approvalReason": NotRequired[Literal["age", "spot_check"]],
        "securityTagMode": NotRequired[Literal["none", "manual", "station", "rfid"]],
        "securityTagStatus": NotRequired[Literal["pending", "deactivated"]],
        "securityTagHint": NotRequired[str],
        "receipt": "TransactionData",
        "success": Literal[True],
        "refund": NotRequired["RefundPaymentResponseRefund"],
    },
)

RegisterAlarmNoticesRequestKeys = TypedDict(
    "RegisterAlarmNoticesRequestKeys",
    {
        "p256dh": str,
        "auth": str,
    },
)

RegisterAlarmNoticesRequest = TypedDict(
    "RegisterAlarmNoticesRequest",
    {
        "endpoint": str,
        "keys": "RegisterAlarmNoticesRequestKeys",
    },
)

RegisterAlarmNoticesResponse = TypedDict(
    "RegisterAlarmNoticesResponse",
    {
        "success": Literal[True],
        "isOn": Literal[True],
    },
)

RegisterDeviceRequest = TypedDict(
    "RegisterDeviceRequest",
    {
        "storeId": str,
        "deviceType": Literal["pos_deactivator", "self_checkout_detacher", "exit_gate", "handheld_reader", "cabinet_unlocker"],
        "name": NotRequired[str],
        "zoneId": NotRequired[str],
        "laneId": NotRequired[str],
        "gateId": NotRequired[str],
        "tillId": NotRequired[str],
        "firmwareVersion": NotRequired[str],
        "canDeactivateLabel": NotRequired[bool],
        "canDetachHardTag": NotRequired[bool],
        "canReadReceiptQr": NotRequired[bool],
        "canReadUhfRfid": NotRequired[bool],
        "canReadHfNfc": NotRequired[bool],
        "canUnlockFixture": NotRequired[bool],
        "supportsOfflineAuth": NotRequired[bool],
        "supportedTechnologies": NotRequired[List[Literal["am", "rf", "uhf_rfid", "hf_nfc", "mechanical_lock"]]],
        "workflowType": NotRequired[Literal["staff_assisted", "self_service", "automatic_exit", "pos_integrated"]],
        "agentId": NotRequired[str],
    },
)

RegisterDeviceResponse = TypedDict(
    "RegisterDeviceResponse",
    {
        "deviceId": str,
        "deviceType": Literal["pos_deactivator", "self_checkout_detacher", "exit_gate", "handheld_reader", "cabinet_unlocker"],
        "storeId": str,
        "name": NotRequired[str],
        "zoneId": NotRequired[str],
        "laneId": NotRequired[str],
        "gateId": NotRequired[str],
        "tillId": NotRequired[str],
        "agentId": NotRequired[str],
        "movingToAgentId": NotRequired[str],
        "firmwareVersion": NotRequired[str],
        "canDeactivateLabel": bool,
        "canDetachHardTag": bool,
        "canReadReceiptQr": bool,
        "canReadUhfRfid": bool,
        "canReadHfNfc": bool,
        "canUnlockFixture": bool,
        "supportsOfflineAuth": bool,
        "supportedTechnologies": List[Literal["am", "rf", "uhf_rfid", "hf_nfc", "mechanical_lock"]],
        "workflowType": Literal["staff_assisted", "self_service", "automatic_exit", "pos_integrated"],
        "registeredAt": str,
        "lastSeenAt": str,
        "decommissionedAt": NotRequired[str],
        "success": Literal[True],
    },
)

RegisterDeviceWithCodeRequest = TypedDict(
    "RegisterDeviceWithCodeRequest",
    {
        "code": str,
        "deviceType": Literal["pos_deactivator", "self_checkout_detacher", "exit_gate", "handheld_reader", "cabinet_unlocker"],
        "name": NotRequired[str],
    },
)

RegisterDeviceWithCodeResponse = TypedDict(
    "RegisterDeviceWithCodeResponse",
    {
        "deviceId": str,
        "deviceType": Literal["pos_deactivator", "self_checkout_detacher", "exit_gate", "handheld_reader", "cabinet_unlocker"],
        "storeId": str,
        "name": NotRequired[str],
        "zoneId": NotRequired[str],
        "laneId": NotRequired[str],
        "gateId": NotRequired[str],
        "tillId": NotRequired[str],
        "agentId": NotRequired[str],
        "movingToAgentId": NotRequired[str],
        "firmwareVersion": NotRequired[str],
        "canDeactivateLabel": bool,
        "canDetachHardTag": bool,
        "canReadReceiptQr": bool,
        "canReadUhfRfid": bool,
        "canReadHfNfc": bool,
        "canUnlockFixture": bool,
        "supportsOfflineAuth": bool,
        "supportedTechnologies": List[Literal["am", "rf", "uhf_rfid", "hf_nfc", "mechanical_lock"]],
        "workflowType": Literal["staff_assisted", "self_service", "automatic_exit", "pos_integrated"],
        "registeredAt": str,
        "lastSeenAt": str,
        "decommissionedAt": NotRequired[str],
        "success": Literal[True],
    },
)

RegisterOperatorRequest = TypedDict(
    "RegisterOperatorRequest",
    {
        "storeId": str,
        "name": str,
        "pin": NotRequired[str],
        "card": NotRequired[str],
    },
)

RegisterOperatorResponse = TypedDict(
    "RegisterOperatorResponse",
    {
        "operatorId": str,
        "storeId": str,
        "name": str,
        "hasPin": bool,
        "hasCard": bool,
        "createdAt": str,
        "success": Literal[True],
        "badge": str,
    },
)

RegisterPasskeyRequestCredentialResponse = TypedDict(
    "RegisterPasskeyRequestCredentialResponse",
    {
        "clientDataJSON": str,
        "attestationObject": str,
        "transports": NotRequired[List[str]],
        "authenticatorData": NotRequired[str],
        "publicKey": NotRequired[str],
        "publicKeyAlgorithm": NotRequired[int],
    },
)

RegisterPasskeyRequestCredential = TypedDict(
    "RegisterPasskeyRequestCredential",
    {
        "id": str,
        "rawId": str,
        "type": Literal["public-key"],
        "authenticatorAttachment": NotRequired[str],
        "clientExtensionResults": NotRequired[Dict[str, Any]],
        "response": "RegisterPasskeyRequestCredentialResponse",
    },
)

RegisterPasskeyRequest = TypedDict(
    "RegisterPasskeyRequest",
    {
        "name": str,
        "credential": "RegisterPasskeyRequestCredential",
    },
)

RegisterPasskeyResponse = TypedDict(
    "RegisterPasskeyResponse",
    {
        "passkeyId": str,
        "name": str,
        "backedUp": bool,
        "createdAt": str,
        "lastUsedAt": NotRequired[str],
        "success": Literal[True],
    },
)

RegisterProductToStoreRequest = TypedDict(
    "RegisterProductToStoreRequest",
    {
        "storeId": str,
        "productId": NotRequired[str],
        "id": NotRequired[str],
        "barcode": NotRequired[str],
        "ean": NotRequired[str],
        "price": NotRequired[float],
        "oldPrice": NotRequired[float],
    },
)

RegisterProductToStoreResponseNutrition = TypedDict(
    "RegisterProductToStoreResponseNutrition",
    {
        "calories": NotRequired[float],
        "fat": NotRequired[float],
        "saturatedFat": NotRequired[float],
        "carbohydrates": NotRequired[float],
        "sugar": NotRequired[float],
        "protein": NotRequired[float],
        "fiber": NotRequired[float],
        "salt": NotRequired[float],
        "nutriScore": NotRequired[Literal["A", "B", "C", "D", "E"]],
        "per": Literal["100g", "100ml"],
        "source": NotRequired[Literal["merchant", "reference", "community"]],
        "confidence": NotRequired[float],
    },
)

RegisterProductToStoreResponseMedia = TypedDict(
    "RegisterProductToStoreResponseMedia",
    {
        "snapshot": str,
    },
)

RegisterProductToStoreResponseFlags = TypedDict(
    "RegisterProductToStoreResponseFlags",
    {
        "requiresHumanVerification": bool,
    },
)

RegisterProductToStoreResponse = TypedDict(
    "RegisterProductToStoreResponse",
    {
        "productId": str,
        "ean": str,
        "name": str,
        "price": float,
        "oldPrice": NotRequired[float],
        "vat": Literal[7, 19],
        "storeId": NotRequired[str],
        "category": NotRequired[str],
        "unit": NotRequired[str],
        "brand": NotRequired[str],
        "description": NotRequired[str],
        "imageUrl": NotRequired[str],
        "weight": NotRequired[str],
        "isOrganic": NotRequired[bool],
        "isVegan": NotRequired[bool],
        "allergens": NotRequired[List[str]],
        "deposit": NotRequired[float],
        "depositVat": NotRequired[Literal[7, 19]],
        "nutrition": NotRequired["RegisterProductToStoreResponseNutrition"],
        "media": NotRequired["RegisterProductToStoreResponseMedia"],
        "tagged": bool,
        "flags": "RegisterProductToStoreResponseFlags",
        "fromPos": bool,
        "posProductId": str,
        "nameLower": str,
        "brandLower": NotRequired[str],
        "createdAt": str,
        "updatedAt": str,
        "success": Literal[True],
    },
)

RegisterProtectedItemsRequestItemsItem = TypedDict(
    "RegisterProtectedItemsRequestItemsItem",
    {
        "tagId": NotRequired[str],
        "epc": NotRequired[str],
        "tagUid": NotRequired[str],
        "tagTechnology": NotRequired[Literal["NfcA", "NfcB", "NfcV", "IsoDep", "MifareClassic", "MifareUltralight"]],
        "protectionTechnology": NotRequired[Literal["am", "rf", "uhf_rfid", "hf_nfc", "mechanical_lock"]],
        "serialNumber": NotRequired[str],
        "ean": NotRequired[str],
        "productId": NotRequired[str],
        "brand": NotRequired[str],
        "category": NotRequired[str],
        "price": NotRequired[float],
        "lot": NotRequired[str],
        "expiry": NotRequired[str],
        "serial": NotRequired[str],
        "itemStatus": NotRequired[Literal["sellable", "returned", "transfer_in_transit", "exception_hold"]],
    },
)

RegisterProtectedItemsRequest = TypedDict(
    "RegisterProtectedItemsRequest",
    {
        "storeId": str,
        "items": List["RegisterProtectedItemsRequestItemsItem"],
    },
)

RegisterProtectedItemsResponseErrorsItem = TypedDict(
    "RegisterProtectedItemsResponseErrorsItem",
    {
        "index": int,
        "field": str,
        "code": str,
        "message": str,
    },
)

RegisterProtectedItemsResponse = TypedDict(
    "RegisterProtectedItemsResponse",
    {
        "success": Literal[True],
        "registered": int,
        "errors": List["RegisterProtectedItemsResponseErrorsItem"],
    },
)

RegisterPushSubscriptionRequestKeys = TypedDict(
    "RegisterPushSubscriptionRequestKeys",
    {
        "p256dh": str,
        "auth": str,
    },
)

RegisterPushSubscriptionRequest = TypedDict(
    "RegisterPushSubscriptionRequest",
    {
        "kind": Literal["web", "https"],
        "endpoint": str,
        "keys": NotRequired["RegisterPushSubscriptionRequestKeys"],
        "userId": NotRequired[str],
        "storeId": NotRequired[str],
        "sessionId": NotRequired[str],
    },
)

RegisterPushSubscriptionResponse = TypedDict(
    "RegisterPushSubscriptionResponse",
    {
        "success": Literal[True],
        "subscriptionId": str,
        "kind": Literal["web", "https"],
        "endpoint": str,
        "userId": NotRequired[str],
        "storeId": NotRequired[str],
        "secret": NotRequired[str],
        "createdAt": str,
    },
)

RegisterWebhookRequest = TypedDict(
    "RegisterWebhookRequest",
    {
        "url": str,
        "events": List[Literal["*", "checkout.completed", "securityTag.deactivated", "product.created", "product.bulk_imported", "offer.published", "clickcollect.order", "clickcollect.status_changed", "clickcollect.picked_up", "payment.created", "payment.refunded", "loyalty.points_earned", "loyalty.points_redeemed", "loyalty.enrollment", "loyalty.reward_unlocked", "loyalty.tier_changed", "loyalty.qr_earned", "loyalty.checkin_earned", "integration.pos.synced", "integration.pos.pushed", "integration.erp.synced", "integration.erp.pushed", "integration.psp.configured", "protection.authorization.requested", "protection.authorization.granted", "protection.authorization.denied", "protection.action.completed", "protection.action.failed", "protection.device.offline", "protection.exception.raised", "webhook.test"]],
        "storeId": NotRequired[str],
        "secret": NotRequired[str],
    },
)

RegisterWebhookResponse = TypedDict(
    "RegisterWebhookResponse",
    {
        "webhookId": str,
        "storeId": NotRequired[str],
        "url": str,
        "events": List[str],
        "enabled": bool,
        "disabledReason": NotRequired[Literal["gone", "failing", "switched_off"]],
        "disabledAt": NotRequired[str],
        "failingSince": NotRequired[str],
        "missedAt": NotRequired[str],
        "oldSecretUntil": NotRequired[str],
        "createdAt": str,
        "updatedAt": str,
        "success": Literal[True],
        "secret": NotRequired[str],
        "warnings": NotRequired[List[str]],
    },
)

RejectStoreRegistrationRequest = TypedDict(
    "RejectStoreRegistrationRequest",
    {
        "registrationId": str,
        "reason": str,
    },
)

RejectStoreRegistrationResponseAddress = TypedDict(
    "RejectStoreRegistrationResponseAddress",
    {
        "street": str,
        "city": str,
        "zip": str,
        "country": str,
    },
)

RejectStoreRegistrationResponse = TypedDict(
    "RejectStoreRegistrationResponse",
    {
        "registrationId": str,
        "kind": Literal["store", "account"],
        "status": Literal["pending", "approved", "rejected"],
        "companyName": str,
        "tradingName": NotRequired[str],
        "address": NotRequired["RejectStoreRegistrationResponseAddress"],
        "phone": NotRequired[str],
        "role": NotRequired[str],
        "contactEmail": NotRequired[str],
        "package": NotRequired[str],
        "accountId": NotRequired[str],
        "storeId": NotRequired[str],
        "reason": NotRequired[str],
        "submittedAt": str,
        "decidedAt": NotRequired[str],
        "success": Literal[True],
    },
)

RemoveAlarmNoticesRequest = TypedDict(
    "RemoveAlarmNoticesRequest",
    {
    },
)

RemoveAlarmNoticesResponse = TypedDict(
    "RemoveAlarmNoticesResponse",
    {
        "success": Literal[True],
        "isOn": Literal[False],
    },
)

RemoveOperatorRequest = TypedDict(
    "RemoveOperatorRequest",
    {
        "operatorId": str,
    },
)

RemoveOperatorResponse = TypedDict(
    "RemoveOperatorResponse",
    {
        "success": Literal[True],
    },
)

RemovePasskeyRequest = TypedDict(
    "RemovePasskeyRequest",
    {
        "passkeyId": str,
    },
)

RemovePasskeyResponse = TypedDict(
    "RemovePasskeyResponse",
    {
        "success": Literal[True],
        "passkeyId": str,
    },
)

RemoveProductFromStoreRequest = TypedDict(
    "RemoveProductFromStoreRequest",
    {
        "storeId": str,
        "productId": NotRequired[str],
        "id": NotRequired[str],
        "barcode": NotRequired[str],
        "ean": NotRequired[str],
    },
)

RemoveProductFromStoreResponse = TypedDict(
    "RemoveProductFromStoreResponse",
    {
        "success": Literal[True],
    },
)

RemovePushSubscriptionRequest = TypedDict(
    "RemovePushSubscriptionRequest",
    {
        "subscriptionId": str,
        "sessionId": NotRequired[str],
    },
)

RemovePushSubscriptionResponse = TypedDict(
    "RemovePushSubscriptionResponse",
    {
        "success": Literal[True],
        "subscriptionId": str,
    },
)

RemoveSecondFactorRequest = TypedDict(
    "RemoveSecondFactorRequest",
    {
        "code": str,
    },
)

RemoveSecondFactorResponse = TypedDict(
    "RemoveSecondFactorResponse",
    {
        "success": Literal[True],
    },
)

RemoveUserRequest = TypedDict(
    "RemoveUserRequest",
    {
        "userId": str,
    },
)

RemoveUserResponse = TypedDict(
    "RemoveUserResponse",
    {
        "success": Literal[True],
        "userId": str,
    },
)

ReportDeviceHeartbeatRequest = TypedDict(
    "ReportDeviceHeartbeatRequest",
    {
        "deviceId": str,
        "firmwareVersion": NotRequired[str],
        "occurredAt": NotRequired[str],
    },
)

ReportDeviceHeartbeatResponse = TypedDict(
    "ReportDeviceHeartbeatResponse",
    {
        "success": Literal[True],
        "lastSeenAt": str,
    },
)

ReportProtectionEventsRequestEventsItem = TypedDict(
    "ReportProtectionEventsRequestEventsItem",
    {
        "type": Literal["protection.authorization.requested", "protection.authorization.granted", "protection.authorization.denied", "protection.action.completed", "protection.action.failed", "protection.device.offline", "protection.exception.raised"],
        "eventId": str,
        "protectionAction": NotRequired[Literal["deactivate_label", "detach_hard_tag", "suppress_alarm", "authorize_exit", "unlock_fixture", "verify_item_status"]],
        "protectionTechnology": NotRequired[Literal["am", "rf", "uhf_rfid", "hf_nfc", "mechanical_lock"]],
        "occurredAt": str,
        "storeId": str,
        "zoneId": NotRequired[str],
        "gateId": NotRequired[str],
        "laneId": NotRequired[str],
        "deviceId": NotRequired[str],
        "deviceType": NotRequired[Literal["pos_deactivator", "self_checkout_detacher", "exit_gate", "handheld_reader", "cabinet_unlocker"]],
        "firmwareVersion": NotRequired[str],
        "purchaseId": NotRequired[str],
        "itemLineId": NotRequired[str],
        "itemStatus": NotRequired[Literal["sellable", "paid", "reserved_bopis", "picked_up", "returned", "transfer_in_transit", "cancelled", "exception_hold"]],
        "workflowType": NotRequired[Literal["staff_assisted", "self_service", "automatic_exit", "pos_integrated"]],
        "scanSource": NotRequired[Literal["pos", "sco", "exit_gate", "associate_handheld", "customer_phone", "service_desk"]],
        "operatorId": NotRequired[str],
        "epc": NotRequired[str],
        "tagUid": NotRequired[str],
        "tagId": NotRequired[str],
        "tagTechnology": NotRequired[Literal["NfcA", "NfcB", "NfcV", "IsoDep", "MifareClassic", "MifareUltralight"]],
        "authorizationState": NotRequired[Literal["issued", "redeemed", "expired", "revoked"]],
        "replayProtectedNonce": NotRequired[str],
        "reason": NotRequired[Union[Literal["token_invalid", "token_expired", "token_revoked", "device_unknown", "device_revoked", "store_mismatch", "locker_mismatch", "clock_untrusted", "policy_stale", "device_not_capable", "technology_mismatch", "item_unknown", "recalled", "item_not_paid", "no_tagged_goods", "already_redeemed", "authorization_outstanding", "action_not_allowed", "workflow_not_allowed", "manual_assistance_required", "limit_exceeded", "tag_not_read"], str]],
        "offline": NotRequired[bool],
        "emergency": NotRequired[bool],
        "unknownFacts": NotRequired[List[Literal["category", "brand", "price"]]],
        "outcome": NotRequired[Literal["confirmed", "failed", "unknown"]],
        "detail": NotRequired[str],
    },
)

ReportProtectionEventsRequest = TypedDict(
    "ReportProtectionEventsRequest",
    {
        "events": NotRequired[List["ReportProtectionEventsRequestEventsItem"]],
        "batch": NotRequired[str],
    },
)

ReportProtectionEventsResponseErrorsItem = TypedDict(
    "ReportProtectionEventsResponseErrorsItem",
    {
        "index": int,
        "code": str,
        "message": str,
    },
)

ReportProtectionEventsResponse = TypedDict(
    "ReportProtectionEventsResponse",
    {
        "success": Literal[True],
        "accepted": int,
        "duplicates": int,
        "errors": List["ReportProtectionEventsResponseErrorsItem"],
        "ack": NotRequired[str],
    },
)

RequestAssistanceRequest = TypedDict(
    "RequestAssistanceRequest",
    {
        "zoneId": str,
        "message": NotRequired[str],
        "userId": NotRequired[str],
    },
)

RequestAssistanceResponse = TypedDict(
    "RequestAssistanceResponse",
    {
        "success": Literal[True],
        "requestId": str,
        "url": str,
    },
)

ResolveAgentForkRequest = TypedDict(
    "ResolveAgentForkRequest",
    {
        "agentId": str,
        "decision": Literal["trust", "revoke"],
    },
)

ResolveAgentForkResponseFaultsDevicesItem = TypedDict(
    "ResolveAgentForkResponseFaultsDevicesItem",
    {
        "deviceId": str,
        "name": NotRequired[str],
        "fault": Literal["degraded", "absent"],
    },
)

ResolveAgentForkResponseFaults = TypedDict(
    "ResolveAgentForkResponseFaults",
    {
        "total": int,
        "devices": List["ResolveAgentForkResponseFaultsDevicesItem"],
    },
)

ResolveAgentForkResponse = TypedDict(
    "ResolveAgentForkResponse",
    {
        "agentId": str,
        "storeId": str,
        "name": str,
        "state": Literal["active", "forked", "revoked"],
        "online": NotRequired[bool],
        "enrolledAt": str,
        "lastSeenAt": str,
        "stateAt": NotRequired[str],
        "release": NotRequired[str],
        "neededRelease": NotRequired[str],
        "policyVersion": NotRequired[int],
        "isPolicyCurrent": NotRequired[bool],
        "currentPolicyVersion": int,
        "faults": NotRequired["ResolveAgentForkResponseFaults"],
        "queueDepth": NotRequired[int],
        "denyVersion": int,
        "itemsVersion": int,
        "generation": int,
        "ledgerSeq": int,
        "revokedAt": NotRequired[str],
        "success": Literal[True],
    },
)

ResolveRedemptionRequest = TypedDict(
    "ResolveRedemptionRequest",
    {
        "redemptionId": str,
        "outcome": Literal["confirmed", "failed"],
        "operatorId": NotRequired[str],
        "replayProtectedNonce": NotRequired[str],
    },
)

ResolveRedemptionResponse = TypedDict(
    "ResolveRedemptionResponse",
    {
        "success": Literal[True],
        "authorizationState": Literal["issued", "redeemed", "expired", "revoked"],
    },
)

ReuseTagsRequestTagsItem = TypedDict(
    "ReuseTagsRequestTagsItem",
    {
        "tagId": NotRequired[str],
        "epc": NotRequired[str],
        "tagUid": NotRequired[str],
        "ean": str,
    },
)

ReuseTagsRequest = TypedDict(
    "ReuseTagsRequest",
    {
        "storeId": str,
        "tags": List["ReuseTagsRequestTagsItem"],
        "operatorId": NotRequired[str],
    },
)

ReuseTagsResponseErrorsItem = TypedDict(
    "ReuseTagsResponseErrorsItem",
    {
        "index": int,
        "field": str,
        "code": str,
        "message": str,
        "tag": NotRequired[str],
    },
)

ReuseTagsResponse = TypedDict(
    "ReuseTagsResponse",
    {
        "success": Literal[True],
        "reused": int,
        "errors": List["ReuseTagsResponseErrorsItem"],
    },
)

RevokeAgentRequest = TypedDict(
    "RevokeAgentRequest",
    {
        "agentId": str,
    },
)

RevokeAgentResponseFaultsDevicesItem = TypedDict(
    "RevokeAgentResponseFaultsDevicesItem",
    {
        "deviceId": str,
        "name": NotRequired[str],
        "fault": Literal["degraded", "absent"],
    },
)

RevokeAgentResponseFaults = TypedDict(
    "RevokeAgentResponseFaults",
    {
        "total": int,
        "devices": List["RevokeAgentResponseFaultsDevicesItem"],
    },
)

RevokeAgentResponse = TypedDict(
    "RevokeAgentResponse",
    {
        "agentId": str,
        "storeId": str,
        "name": str,
        "state": Literal["active", "forked", "revoked"],
        "online": NotRequired[bool],
        "enrolledAt": str,
        "lastSeenAt": str,
        "stateAt": NotRequired[str],
        "release": NotRequired[str],
        "neededRelease": NotRequired[str],
        "policyVersion": NotRequired[int],
        "isPolicyCurrent": NotRequired[bool],
        "currentPolicyVersion": int,
        "faults": NotRequired["RevokeAgentResponseFaults"],
        "queueDepth": NotRequired[int],
        "denyVersion": int,
        "itemsVersion": int,
        "generation": int,
        "ledgerSeq": int,
        "revokedAt": NotRequired[str],
        "success": Literal[True],
    },
)

RevokeApiKeyRequest = TypedDict(
    "RevokeApiKeyRequest",
    {
        "keyId": str,
    },
)

RevokeApiKeyResponse = TypedDict(
    "RevokeApiKeyResponse",
    {
        "keyId": str,
        "kind": Literal["secret", "publishable", "admin"],
        "mode": Literal["test", "live"],
        "name": str,
        "shown": str,
        "storeIds": NotRequired[List[str]],
        "status": Literal["active", "expired", "revoked"],
        "createdAt": str,
        "lastUsedAt": str,
        "expiresAt": NotRequired[str],
        "revokedAt": NotRequired[str],
        "replacedBy": NotRequired[str],
        "success": Literal[True],
        "warnings": NotRequired[List[str]],
    },
)

RevokeProtectionAuthorizationRequest = TypedDict(
    "RevokeProtectionAuthorizationRequest",
    {
        "replayProtectedNonce": str,
        "reason": NotRequired[str],
    },
)

RevokeProtectionAuthorizationResponse = TypedDict(
    "RevokeProtectionAuthorizationResponse",
    {
        "success": Literal[True],
        "authorizationState": Literal["issued", "redeemed", "expired", "revoked"],
    },
)

RevokeTillRequest = TypedDict(
    "RevokeTillRequest",
    {
        "storeId": str,
        "tillId": str,
        "sinceAt": NotRequired[str],
    },
)

RevokeTillResponse = TypedDict(
    "RevokeTillResponse",
    {
        "success": Literal[True],
        "tillId": str,
        "revokedAt": str,
        "sinceAt": str,
        "held": int,
    },
)

RollApiKeyRequest = TypedDict(
    "RollApiKeyRequest",
    {
        "keyId": str,
        "overlapHours": NotRequired[int],
    },
)

RollApiKeyResponse = TypedDict(
    "RollApiKeyResponse",
    {
        "success": Literal[True],
        "keyId": str,
        "key": str,
    },
)

RollWebhookSecretRequest = TypedDict(
    "RollWebhookSecretRequest",
    {
        "webhookId": str,
        "overlapHours": NotRequired[float],
        "secret": NotRequired[str],
    },
)

RollWebhookSecretResponse = TypedDict(
    "RollWebhookSecretResponse",
    {
        "webhookId": str,
        "storeId": NotRequired[str],
        "url": str,
        "events": List[str],
        "enabled": bool,
        "disabledReason": NotRequired[Literal["gone", "failing", "switched_off"]],
        "disabledAt": NotRequired[str],
        "failingSince": NotRequired[str],
        "missedAt": NotRequired[str],
        "oldSecretUntil": NotRequired[str],
        "createdAt": str,
        "updatedAt": str,
        "success": Literal[True],
        "secret": NotRequired[str],
        "warnings": NotRequired[List[str]],
    },
)

RotateAgentKeyRequestPublicJwk = TypedDict(
    "RotateAgentKeyRequestPublicJwk",
    {
        "kty": Literal["OKP"],
        "crv": Literal["Ed25519"],
        "x": str,
    },
)

RotateAgentKeyRequest = TypedDict(
    "RotateAgentKeyRequest",
    {
        "publicJwk": "RotateAgentKeyRequestPublicJwk",
        "proof": str,
    },
)

RotateAgentKeyResponse = TypedDict(
    "RotateAgentKeyResponse",
    {
        "success": Literal[True],
        "kid": str,
    },
)

RotateSigningKeyRequest = TypedDict(
    "RotateSigningKeyRequest",
    {
        "use": Literal["token", "receipt", "policy", "freshness"],
        "revoke": NotRequired[Union[bool, Literal["all"], str]],
        "accountId": NotRequired[str],
        "mode": NotRequired[Literal["test", "live"]],
    },
)

RotateSigningKeyResponseKeysItem = TypedDict(
    "RotateSigningKeyResponseKeysItem",
    {
        "iss": str,
        "kid": str,
    },
)

RotateSigningKeyResponse = TypedDict(
    "RotateSigningKeyResponse",
    {
        "success": Literal[True],
        "kid": str,
        "keys": List["RotateSigningKeyResponseKeysItem"],
    },
)

SearchProductsRequest = TypedDict(
    "SearchProductsRequest",
    {
        "storeId": NotRequired[str],
        "q": str,
        "limit": NotRequired[int],
    },
)

SearchProductsResponse = TypedDict(
    "SearchProductsResponse",
    {
        "success": Literal[True],
        "products": List["Product"],
    },
)

SendTestWebhookRequest = TypedDict(
    "SendTestWebhookRequest",
    {
        "webhookId": NotRequired[str],
        "event": NotRequired[Literal["checkout.completed", "securityTag.deactivated", "product.created", "product.bulk_imported", "offer.published", "clickcollect.order", "clickcollect.status_changed", "clickcollect.picked_up", "payment.created", "payment.refunded", "loyalty.points_earned", "loyalty.points_redeemed", "loyalty.enrollment", "loyalty.reward_unlocked", "loyalty.tier_changed", "loyalty.qr_earned", "loyalty.checkin_earned", "integration.pos.synced", "integration.pos.pushed", "integration.erp.synced", "integration.erp.pushed", "integration.psp.configured", "protection.authorization.requested", "protection.authorization.granted", "protection.authorization.denied", "protection.action.completed", "protection.action.failed", "protection.device.offline", "protection.exception.raised", "webhook.test"]],
        "storeId": NotRequired[str],
    },
)

SendTestWebhookResponse = TypedDict(
    "SendTestWebhookResponse",
    {
        "success": Literal[True],
        "eventId": str,
        "event": str,
        "webhooks": int,
    },
)

SetStockRequest = TypedDict(
    "SetStockRequest",
    {
        "productId": str,
        "storeId": str,
        "quantity": int,
        "reserved": NotRequired[int],
        "available": NotRequired[int],
        "updatedAt": NotRequired[str],
    },
)

SetStockResponse = TypedDict(
    "SetStockResponse",
    {
        "storeId": str,
        "productId": str,
        "quantity": int,
        "reserved": int,
        "available": int,
        "updatedAt": str,
        "success": Literal[True],
    },
)

SetStorePackageRequest = TypedDict(
    "SetStorePackageRequest",
    {
        "storeId": str,
        "package": str,
        "expectedPackage": NotRequired[str],
    },
)

SetStorePackageResponseAddress = TypedDict(
    "SetStorePackageResponseAddress",
    {
        "street": str,
        "city": str,
        "zip": str,
        "country": str,
    },
)

SetStorePackageResponseCoordinates = TypedDict(
    "SetStorePackageResponseCoordinates",
    {
        "lat": float,
        "lng": float,
    },
)

SetStorePackageResponse = TypedDict(
    "SetStorePackageResponse",
    {
        "storeId": str,
        "companyName": str,
        "tradingName": str,
        "address": "SetStorePackageResponseAddress",
        "coordinates": NotRequired["SetStorePackageResponseCoordinates"],
        "hasScanAndGo": bool,
        "package": Literal["DISCOVER", "ASSIST", "GO", "GROW", "PRIME"],
        "securityTagMode": Literal["none", "manual", "station", "rfid"],
        "securityTagHint": NotRequired[str],
        "protectionTechnology": NotRequired[Literal["am", "rf", "uhf_rfid", "hf_nfc", "mechanical_lock"]],
        "deviceType": NotRequired[Literal["pos_deactivator", "self_checkout_detacher", "exit_gate", "handheld_reader", "cabinet_unlocker"]],
        "workflowType": NotRequired[Literal["staff_assisted", "self_service", "automatic_exit", "pos_integrated"]],
        "gln": NotRequired[str],
        "inStoreCodes": NotRequired[List[str]],
        "success": Literal[True],
    },
)

SignInRequest = TypedDict(
    "SignInRequest",
    {
        "email": str,
        "password": str,
        "account": NotRequired[str],
        "device": NotRequired[str],
    },
)

SignInResponse = TypedDict(
    "SignInResponse",
    {
        "success": Literal[True],
        "sessionToken": str,
        "state": Literal["active", "pending"],
        "userId": str,
        "role": Literal["owner", "admin", "manager", "associate", "viewer", "platform"],
        "mode": Literal["test", "live"],
        "expiresAt": str,
    },
)

SignInWithPasskeyRequestCredentialResponse = TypedDict(
    "SignInWithPasskeyRequestCredentialResponse",
    {
        "clientDataJSON": str,
        "authenticatorData": str,
        "signature": str,
        "userHandle": NotRequired[str],
    },
)

SignInWithPasskeyRequestCredential = TypedDict(
    "SignInWithPasskeyRequestCredential",
    {
        "id": str,
        "rawId": str,
        "type": Literal["public-key"],
        "authenticatorAttachment": NotRequired[str],
        "clientExtensionResults": NotRequired[Dict[str, Any]],
        "response": "SignInWithPasskeyRequestCredentialResponse",
    },
)

SignInWithPasskeyRequest = TypedDict(
    "SignInWithPasskeyRequest",
    {
        "credential": "SignInWithPasskeyRequestCredential",
        "device": NotRequired[str],
    },
)

SignInWithPasskeyResponse = TypedDict(
    "SignInWithPasskeyResponse",
    {
        "success": Literal[True],
        "sessionToken": str,
        "state": Literal["active", "pending"],
        "userId": str,
        "role": Literal["owner", "admin", "manager", "associate", "viewer", "platform"],
        "mode": Literal["test", "live"],
        "expiresAt": str,
    },
)

SignOutRequest = TypedDict(
    "SignOutRequest",
    {
    },
)

SignOutResponse = TypedDict(
    "SignOutResponse",
    {
        "success": Literal[True],
    },
)

SimulateProtectionPolicyRequestPolicyOffline = TypedDict(
    "SimulateProtectionPolicyRequestPolicyOffline",
    {
        "maxRiskClass": NotRequired[int],
        "hardCount": NotRequired[int],
        "maxIsolatedSeconds": NotRequired[int],
        "storeBound": NotRequired[Literal["risk", "deny"]],
    },
)

SimulateProtectionPolicyRequestPolicyGateSeverityItem = TypedDict(
    "SimulateProtectionPolicyRequestPolicyGateSeverityItem",
    {
        "category": NotRequired[str],
        "fromValue": NotRequired[float],
        "severity": Literal["silent", "notify", "siren"],
    },
)

SimulateProtectionPolicyRequestPolicyGateBulk = TypedDict(
    "SimulateProtectionPolicyRequestPolicyGateBulk",
    {
        "tags": NotRequired[int],
        "seconds": NotRequired[int],
    },
)

SimulateProtectionPolicyRequestPolicyGateReplenishment = TypedDict(
    "SimulateProtectionPolicyRequestPolicyGateReplenishment",
    {
        "tags": NotRequired[int],
        "seconds": NotRequired[int],
        "muteSeconds": NotRequired[int],
    },
)

SimulateProtectionPolicyRequestPolicyGate = TypedDict(
    "SimulateProtectionPolicyRequestPolicyGate",
    {
        "severity": NotRequired[List["SimulateProtectionPolicyRequestPolicyGateSeverityItem"]],
        "ownPrefixes": NotRequired[List[str]],
        "ownMasks": NotRequired[List[str]],
        "alarmMasks": NotRequired[List[str]],
        "bulk": NotRequired["SimulateProtectionPolicyRequestPolicyGateBulk"],
        "replenishment": NotRequired["SimulateProtectionPolicyRequestPolicyGateReplenishment"],
    },
)

SimulateProtectionPolicyRequestPolicyTillSales = TypedDict(
    "SimulateProtectionPolicyRequestPolicyTillSales",
    {
        "agents": NotRequired[List[str]],
        "salesPerHour": NotRequired[int],
        "valuePerHour": NotRequired[float],
        "codes": NotRequired[Literal["barrier", "release"]],
        "passByProduct": NotRequired[int],
    },
)

SimulateProtectionPolicyRequestPolicy = TypedDict(
    "SimulateProtectionPolicyRequestPolicy",
    {
        "allowedActionsByCategory": NotRequired[Dict[str, Dict[str, List[Literal["staff_assisted", "self_service", "automatic_exit", "pos_integrated"]]]]],
        "requiresManualOverrideAboveValue": NotRequired[float],
        "requiresStaffForBrand": NotRequired[List[str]],
        "offline": NotRequired["SimulateProtectionPolicyRequestPolicyOffline"],
        "unknownTag": NotRequired[Literal["ignore", "notify", "siren"]],
        "gate": NotRequired["SimulateProtectionPolicyRequestPolicyGate"],
        "tillSales": NotRequired["SimulateProtectionPolicyRequestPolicyTillSales"],
        "operatorOverridesPerHour": NotRequired[int],
        "spotCheckRate": NotRequired[float],
        "minAgent": NotRequired[str],
        "home": NotRequired[str],
        "homeEpoch": NotRequired[int],
    },
)

SimulateProtectionPolicyRequest = TypedDict(
    "SimulateProtectionPolicyRequest",
    {
        "storeId": str,
        "policy": "SimulateProtectionPolicyRequestPolicy",
        "since": NotRequired[str],
    },
)

SimulateProtectionPolicyResponseChangedItemBefore = TypedDict(
    "SimulateProtectionPolicyResponseChangedItemBefore",
    {
        "authorized": bool,
        "reason": NotRequired[Literal["token_invalid", "token_expired", "token_revoked", "device_unknown", "device_revoked", "store_mismatch", "locker_mismatch", "clock_untrusted", "policy_stale", "device_not_capable", "technology_mismatch", "item_unknown", "recalled", "item_not_paid", "no_tagged_goods", "already_redeemed", "authorization_outstanding", "action_not_allowed", "workflow_not_allowed", "manual_assistance_required", "limit_exceeded", "tag_not_read"]],
        "detail": NotRequired[str],
    },
)

SimulateProtectionPolicyResponseChangedItemAfter = TypedDict(
    "SimulateProtectionPolicyResponseChangedItemAfter",
    {
        "authorized": bool,
        "reason": NotRequired[Literal["token_invalid", "token_expired", "token_revoked", "device_unknown", "device_revoked", "store_mismatch", "locker_mismatch", "clock_untrusted", "policy_stale", "device_not_capable", "technology_mismatch", "item_unknown", "recalled", "item_not_paid", "no_tagged_goods", "already_redeemed", "authorization_outstanding", "action_not_allowed", "workflow_not_allowed", "manual_assistance_required", "limit_exceeded", "tag_not_read"]],
        "detail": NotRequired[str],
    },
)

SimulateProtectionPolicyResponseChangedItemOffline = TypedDict(
    "SimulateProtectionPolicyResponseChangedItemOffline",
    {
        "authorized": bool,
        "reason": NotRequired[Literal["token_invalid", "token_expired", "token_revoked", "device_unknown", "device_revoked", "store_mismatch", "locker_mismatch", "clock_untrusted", "policy_stale", "device_not_capable", "technology_mismatch", "item_unknown", "recalled", "item_not_paid", "no_tagged_goods", "already_redeemed", "authorization_outstanding", "action_not_allowed", "workflow_not_allowed", "manual_assistance_required", "limit_exceeded", "tag_not_read"]],
        "unknownFacts": List[Literal["category", "brand", "price"]],
    },
)

SimulateProtectionPolicyResponseChangedItem = TypedDict(
    "SimulateProtectionPolicyResponseChangedItem",
    {
        "eventId": str,
        "occurredAt": str,
        "deviceId": NotRequired[str],
        "protectionAction": Literal["deactivate_label", "detach_hard_tag", "suppress_alarm", "authorize_exit", "unlock_fixture", "verify_item_status"],
        "before": "SimulateProtectionPolicyResponseChangedItemBefore",
        "after": "SimulateProtectionPolicyResponseChangedItemAfter",
        "offline": "SimulateProtectionPolicyResponseChangedItemOffline",
    },
)

SimulateProtectionPolicyResponse = TypedDict(
    "SimulateProtectionPolicyResponse",
    {
        "success": Literal[True],
        "decisions": int,
        "changedTotal": int,
        "worstCaseLoss": float,
        "changed": List["SimulateProtectionPolicyResponseChangedItem"],
    },
)

SimulateStorePackageRequest = TypedDict(
    "SimulateStorePackageRequest",
    {
        "storeId": str,
        "package": NotRequired[str],
    },
)

SimulateStorePackageResponsePackage = TypedDict(
    "SimulateStorePackageResponsePackage",
    {
        "before": Literal["DISCOVER", "ASSIST", "GO", "GROW", "PRIME"],
        "after": Literal["DISCOVER", "ASSIST", "GO", "GROW", "PRIME"],
    },
)

SimulateStorePackageResponseHasScanAndGo = TypedDict(
    "SimulateStorePackageResponseHasScanAndGo",
    {
        "before": bool,
        "after": bool,
    },
)

SimulateStorePackageResponseHasOffers = TypedDict(
    "SimulateStorePackageResponseHasOffers",
    {
        "before": bool,
        "after": bool,
    },
)

SimulateStorePackageResponseAccountPackage = TypedDict(
    "SimulateStorePackageResponseAccountPackage",
    {
        "before": Literal["DISCOVER", "ASSIST", "GO", "GROW", "PRIME"],
        "after": Literal["DISCOVER", "ASSIST", "GO", "GROW", "PRIME"],
    },
)

SimulateStorePackageResponse = TypedDict(
    "SimulateStorePackageResponse",
    {
        "success": Literal[True],
        "storeId": str,
        "accountId": str,
        "tradingName": str,
        "mode": Literal["test", "live"],
        "package": "SimulateStorePackageResponsePackage",
        "hasScanAndGo": "SimulateStorePackageResponseHasScanAndGo",
        "hasOffers": "SimulateStorePackageResponseHasOffers",
        "accountPackage": "SimulateStorePackageResponseAccountPackage",
        "stopsAgents": bool,
    },
)

StartCheckoutRequest = TypedDict(
    "StartCheckoutRequest",
    {
        "sessionId": str,
        "items": List["CheckoutLine"],
        "userId": NotRequired[str],
        "storeId": NotRequired[str],
        "currency": NotRequired[Literal["EUR"]],
        "destination": NotRequired[str],
    },
)

StartCheckoutResponseItemsItem = TypedDict(
    "StartCheckoutResponseItemsItem",
    {
        "itemLineId": str,
        "productId": NotRequired[str],
        "name": str,
        "price": float,
        "paid": float,
        "listPrice": NotRequired[float],
        "quantity": int,
        "cameBack": NotRequired[int],
        "depositOf": NotRequired[str],
        "weightGrams": NotRequired[int],
        "priceOrigin": NotRequired[Literal["catalogue", "item", "client"]],
        "priceReason": NotRequired[Literal["staff", "markdown", "coupon", "till"]],
    },
)

StartCheckoutResponseRefundsItemLinesItem = TypedDict(
    "StartCheckoutResponseRefundsItemLinesItem",
    {
        "itemLineId": str,
        "quantity": int,
        "part": NotRequired[float],
    },
)

StartCheckoutResponseRefundsItem = TypedDict(
    "StartCheckoutResponseRefundsItem",
    {
        "refundId": str,
        "kind": Literal["whole", "part", "late"],
        "status": Literal["pending", "done", "failed"],
        "inDoubt": NotRequired[Literal[True]],
        "outside": NotRequired[Literal["refund", "dispute"]],
        "lines": NotRequired[List["StartCheckoutResponseRefundsItemLinesItem"]],
        "amount": float,
        "requestedBy": NotRequired[str],
        "requestedByName": NotRequired[str],
        "createdAt": str,
        "completedAt": NotRequired[str],
    },
)

StartCheckoutResponse = TypedDict(
    "StartCheckoutResponse",
    {
        "transactionId": str,
        "storeId": str,
        "items": List["StartCheckoutResponseItemsItem"],
        "total": float,
        "refunded": float,
        "refunds": List["StartCheckoutResponseRefundsItem"],
        "currency": str,
        "timestamp": str,
        "status": Literal["CREATED", "PENDING_PAYMENT", "SUCCESS", "UNLOADED", "CANCELLED"],
        "refundStatus": NotRequired[Literal["pending", "done", "failed"]],
        "awaitingApproval": NotRequired[bool],
        "approvalReason": NotRequired[Literal["age", "spot_check"]],
        "securityTagMode": NotRequired[Literal["none", "manual", "station", "rfid"]],
        "securityTagStatus": NotRequired[Literal["pending", "deactivated"]],
        "securityTagHint": NotRequired[str],
        "receipt": "TransactionData",
        "success": Literal[True],
        "checkoutUrl": str,
    },
)

StoreAddress = TypedDict(
    "StoreAddress",
    {
        "street": str,
        "city": str,
        "zip": str,
        "country": str,
    },
)

StoreCoordinates = TypedDict(
    "StoreCoordinates",
    {
        "lat": float,
        "lng": float,
    },
)

Store = TypedDict(
    "Store",
    {
        "storeId": str,
        "companyName": str,
        "tradingName": str,
        "address": "StoreAddress",
        "coordinates": NotRequired["StoreCoordinates"],
        "hasScanAndGo": bool,
        "package": Literal["DISCOVER", "ASSIST", "GO", "GROW", "PRIME"],
        "securityTagMode": Literal["none", "manual", "station", "rfid"],
        "securityTagHint": NotRequired[str],
        "protectionTechnology": NotRequired[Literal["am", "rf", "uhf_rfid", "hf_nfc", "mechanical_lock"]],
        "deviceType": NotRequired[Literal["pos_deactivator", "self_checkout_detacher", "exit_gate", "handheld_reader", "cabinet_unlocker"]],
        "workflowType": NotRequired[Literal["staff_assisted", "self_service", "automatic_exit", "pos_integrated"]],
        "gln": NotRequired[str],
        "inStoreCodes": NotRequired[List[str]],
    },
)

StoreMasterDataName = TypedDict(
    "StoreMasterDataName",
    {
        "legal": str,
        "trading": str,
    },
)

StoreMasterDataAddress = TypedDict(
    "StoreMasterDataAddress",
    {
        "street": str,
        "city": str,
        "postalCode": str,
        "countryCode": str,
    },
)

StoreMasterDataCoordinates = TypedDict(
    "StoreMasterDataCoordinates",
    {
        "latitude": float,
        "longitude": float,
    },
)

StoreMasterData = TypedDict(
    "StoreMasterData",
    {
        "id": str,
        "name": "StoreMasterDataName",
        "address": "StoreMasterDataAddress",
        "coordinates": NotRequired["StoreMasterDataCoordinates"],
        "media": NotRequired[Dict[str, str]],
        "social": NotRequired[Dict[str, str]],
        "mode": Literal["demo", "live"],
        "package": str,
        "hasScanAndGo": bool,
        "hasOffers": bool,
        "rating": float,
        "phone": NotRequired[str],
        "email": NotRequired[str],
        "website": NotRequired[str],
        "openingHours": NotRequired[Dict[str, str]],
        "pspAccountId": NotRequired[str],
        "receiptCount": int,
        "securityTagMode": Literal["none", "manual", "station", "rfid"],
        "securityTagHint": NotRequired[str],
        "protectionTechnology": NotRequired[Literal["am", "rf", "uhf_rfid", "hf_nfc", "mechanical_lock"]],
        "deviceType": NotRequired[Literal["pos_deactivator", "self_checkout_detacher", "exit_gate", "handheld_reader", "cabinet_unlocker"]],
        "workflowType": NotRequired[Literal["staff_assisted", "self_service", "automatic_exit", "pos_integrated"]],
        "gln": NotRequired[str],
        "inStoreCodes": NotRequired[List[str]],
    },
)

SubmitClickCollectOrderRequestItemsItem = TypedDict(
    "SubmitClickCollectOrderRequestItemsItem",
    {
        "productId": NotRequired[str],
        "ean": NotRequired[str],
        "quantity": int,
    },
)

SubmitClickCollectOrderRequest = TypedDict(
    "SubmitClickCollectOrderRequest",
    {
        "storeId": str,
        "userId": str,
        "items": List["SubmitClickCollectOrderRequestItemsItem"],
        "pickupTime": NotRequired[str],
        "note": NotRequired[str],
        "paid": NotRequired[bool],
    },
)

SubmitClickCollectOrderResponseItemsItemReservedTagsItem = TypedDict(
    "SubmitClickCollectOrderResponseItemsItemReservedTagsItem",
    {
        "epc": NotRequired[str],
        "tagUid": NotRequired[str],
        "tagId": NotRequired[str],
    },
)

SubmitClickCollectOrderResponseItemsItem = TypedDict(
    "SubmitClickCollectOrderResponseItemsItem",
    {
        "productId": str,
        "ean": str,
        "name": str,
        "price": float,
        "quantity": int,
        "reservedTags": List["SubmitClickCollectOrderResponseItemsItemReservedTagsItem"],
    },
)

SubmitClickCollectOrderResponse = TypedDict(
    "SubmitClickCollectOrderResponse",
    {
        "orderId": str,
        "storeId": str,
        "userId": str,
        "status": Literal["pending", "confirmed", "preparing", "ready", "picked_up", "cancelled"],
        "items": List["SubmitClickCollectOrderResponseItemsItem"],
        "total": float,
        "currency": str,
        "note": NotRequired[str],
        "pickupTime": NotRequired[str],
        "estimatedPickupAt": str,
        "reason": NotRequired[str],
        "createdAt": str,
        "updatedAt": str,
        "pickedUpAt": NotRequired[str],
        "paid": bool,
        "lockerDeviceId": NotRequired[str],
        "success": Literal[True],
        "pickupCode": str,
    },
)

SubmitStoreRegistrationRequestName = TypedDict(
    "SubmitStoreRegistrationRequestName",
    {
        "legal": NotRequired[str],
        "trading": NotRequired[str],
    },
)

SubmitStoreRegistrationRequestAddress = TypedDict(
    "SubmitStoreRegistrationRequestAddress",
    {
        "street": NotRequired[str],
        "city": NotRequired[str],
        "zip": NotRequired[str],
        "postalCode": NotRequired[str],
        "country": NotRequired[str],
        "countryCode": NotRequired[str],
    },
)

SubmitStoreRegistrationRequestCoordinates = TypedDict(
    "SubmitStoreRegistrationRequestCoordinates",
    {
        "lat": NotRequired[float],
        "lng": NotRequired[float],
        "latitude": NotRequired[float],
        "longitude": NotRequired[float],
    },
)

SubmitStoreRegistrationRequestMedia = TypedDict(
    "SubmitStoreRegistrationRequestMedia",
    {
        "logo": NotRequired[str],
        "cover": NotRequired[str],
    },
)

SubmitStoreRegistrationRequestSocial = TypedDict(
    "SubmitStoreRegistrationRequestSocial",
    {
        "instagram": NotRequired[str],
        "facebook": NotRequired[str],
        "tiktok": NotRequired[str],
    },
)

SubmitStoreRegistrationRequestOpeningHours = TypedDict(
    "SubmitStoreRegistrationRequestOpeningHours",
    {
        "monday": NotRequired[str],
        "tuesday": NotRequired[str],
        "wednesday": NotRequired[str],
        "thursday": NotRequired[str],
        "friday": NotRequired[str],
        "saturday": NotRequired[str],
        "sunday": NotRequired[str],
    },
)

SubmitStoreRegistrationRequest = TypedDict(
    "SubmitStoreRegistrationRequest",
    {
        "companyName": NotRequired[str],
        "tradingName": NotRequired[str],
        "name": NotRequired["SubmitStoreRegistrationRequestName"],
        "address": NotRequired["SubmitStoreRegistrationRequestAddress"],
        "coordinates": NotRequired["SubmitStoreRegistrationRequestCoordinates"],
        "phone": NotRequired[str],
        "email": NotRequired[str],
        "website": NotRequired[str],
        "media": NotRequired["SubmitStoreRegistrationRequestMedia"],
        "social": NotRequired["SubmitStoreRegistrationRequestSocial"],
        "openingHours": NotRequired["SubmitStoreRegistrationRequestOpeningHours"],
        "pspAccountId": NotRequired[str],
        "hasScanAndGo": NotRequired[bool],
        "hasOffers": NotRequired[bool],
        "securityTagMode": NotRequired[Literal["none", "manual", "station", "rfid"]],
        "securityTagHint": NotRequired[str],
        "protectionTechnology": NotRequired[Literal["am", "rf", "uhf_rfid", "hf_nfc", "mechanical_lock"]],
        "deviceType": NotRequired[Literal["pos_deactivator", "self_checkout_detacher", "exit_gate", "handheld_reader", "cabinet_unlocker"]],
        "workflowType": NotRequired[Literal["staff_assisted", "self_service", "automatic_exit", "pos_integrated"]],
        "inStoreCodes": NotRequired[List[str]],
        "gln": NotRequired[str],
        "package": NotRequired[str],
    },
)

SubmitStoreRegistrationRequestRequestAddress = TypedDict(
    "SubmitStoreRegistrationRequestRequestAddress",
    {
        "street": NotRequired[str],
        "city": NotRequired[str],
        "zip": NotRequired[str],
        "postalCode": NotRequired[str],
        "country": NotRequired[str],
        "countryCode": NotRequired[str],
    },
)

SubmitStoreRegistrationRequestRequest = TypedDict(
    "SubmitStoreRegistrationRequestRequest",
    {
        "companyName": str,
        "tradingName": NotRequired[str],
        "role": NotRequired[str],
        "address": NotRequired["SubmitStoreRegistrationRequestRequestAddress"],
        "contactEmail": NotRequired[str],
    },
)

SubmitStoreRegistrationRequestResponse = TypedDict(
    "SubmitStoreRegistrationRequestResponse",
    {
        "success": Literal[True],
        "registrationId": str,
        "status": Literal["pending"],
        "claimSecret": str,
    },
)

SubmitStoreRegistrationResponse = TypedDict(
    "SubmitStoreRegistrationResponse",
    {
        "success": Literal[True],
        "registrationId": str,
        "status": Literal["pending"],
    },
)

SwitchModeRequest = TypedDict(
    "SwitchModeRequest",
    {
        "mode": Literal["test", "live"],
    },
)

SwitchModeResponse = TypedDict(
    "SwitchModeResponse",
    {
        "success": Literal[True],
        "mode": Literal["test", "live"],
    },
)

SyncERPRequest = TypedDict(
    "SyncERPRequest",
    {
        "system": Literal["odoo", "erpnext", "businesscentral", "sapb1", "generic", "custom"],
        "dataType": NotRequired[Literal["stock", "orders", "suppliers"]],
        "storeId": str,
        "credentials": NotRequired[Dict[str, Union[str, Dict[str, str]]]],
        "records": NotRequired[List[Dict[str, Any]]],
        "remember": NotRequired[bool],
    },
)

SyncERPResponseErrorsItem = TypedDict(
    "SyncERPResponseErrorsItem",
    {
        "dataType": str,
        "index": int,
        "ean": str,
        "externalId": str,
        "field": str,
        "code": str,
        "message": str,
    },
)

SyncERPResponseSynced = TypedDict(
    "SyncERPResponseSynced",
    {
        "stock": int,
        "orders": int,
        "suppliers": int,
    },
)

SyncERPResponse = TypedDict(
    "SyncERPResponse",
    {
        "success": Literal[True],
        "_sandbox": NotRequired[Literal[True]],
        "system": str,
        "errors": List["SyncERPResponseErrorsItem"],
        "errorCount": int,
        "hasMore": NotRequired[Literal[True]],
        "warnings": NotRequired[List[str]],
        "synced": "SyncERPResponseSynced",
    },
)

SyncPOSRequest = TypedDict(
    "SyncPOSRequest",
    {
        "system": Literal["shopify", "square", "lightspeed", "clover", "sumup", "generic", "custom"],
        "storeId": str,
        "credentials": NotRequired[Dict[str, Union[str, Dict[str, str]]]],
        "records": NotRequired[List[Dict[str, Any]]],
        "remember": NotRequired[bool],
    },
)

SyncPOSResponseErrorsItem = TypedDict(
    "SyncPOSResponseErrorsItem",
    {
        "dataType": str,
        "index": int,
        "ean": str,
        "externalId": str,
        "field": str,
        "code": str,
        "message": str,
    },
)

SyncPOSResponseSynced = TypedDict(
    "SyncPOSResponseSynced",
    {
        "products": int,
        "categories": int,
        "priceUpdates": int,
    },
)

SyncPOSResponse = TypedDict(
    "SyncPOSResponse",
    {
        "success": Literal[True],
        "_sandbox": NotRequired[Literal[True]],
        "system": str,
        "errors": List["SyncPOSResponseErrorsItem"],
        "errorCount": int,
        "hasMore": NotRequired[Literal[True]],
        "warnings": NotRequired[List[str]],
        "synced": "SyncPOSResponseSynced",
    },
)

TransactionDataStoreData = TypedDict(
    "TransactionDataStoreData",
    {
        "id": str,
        "name": str,
        "mode": Literal["demo", "live"],
        "address": str,
        "logo": NotRequired[str],
    },
)

TransactionDataItemsItem = TypedDict(
    "TransactionDataItemsItem",
    {
        "itemLineId": str,
        "name": str,
        "ean": NotRequired[str],
        "priceUnit": int,
        "listPriceUnit": NotRequired[int],
        "quantity": int,
        "vat": Literal[0, 7, 19],
        "totalCent": int,
        "cameBack": NotRequired[int],
        "depositOf": NotRequired[str],
        "barcode": NotRequired[str],
        "weightGrams": NotRequired[int],
        "pricePerKgCent": NotRequired[int],
        "lot": NotRequired[str],
        "expiry": NotRequired[str],
        "serial": NotRequired[str],
        "priceOrigin": NotRequired[Literal["catalogue", "item", "client"]],
        "priceReason": NotRequired[Literal["staff", "markdown", "coupon", "till"]],
    },
)

TransactionDataVatBreakdownValue = TypedDict(
    "TransactionDataVatBreakdownValue",
    {
        "net": int,
        "tax": int,
    },
)

TransactionDataRefundsItemLinesItem = TypedDict(
    "TransactionDataRefundsItemLinesItem",
    {
        "itemLineId": str,
        "quantity": int,
        "part": NotRequired[float],
    },
)

TransactionDataRefundsItem = TypedDict(
    "TransactionDataRefundsItem",
    {
        "refundId": str,
        "kind": Literal["whole", "part", "late"],
        "status": Literal["pending", "done", "failed"],
        "inDoubt": NotRequired[Literal[True]],
        "outside": NotRequired[Literal["refund", "dispute"]],
        "lines": NotRequired[List["TransactionDataRefundsItemLinesItem"]],
        "amountCent": int,
        "createdAt": int,
        "completedAt": NotRequired[int],
    },
)

TransactionDataTill = TypedDict(
    "TransactionDataTill",
    {
        "saleId": str,
        "tillId": NotRequired[str],
        "series": NotRequired[str],
    },
)

TransactionData = TypedDict(
    "TransactionData",
    {
        "id": str,
        "sessionId": NotRequired[str],
        "userId": NotRequired[str],
        "checkoutSessionId": NotRequired[str],
        "storeData": "TransactionDataStoreData",
        "items": List["TransactionDataItemsItem"],
        "currency": str,
        "subtotalCent": int,
        "vatBreakdown": Dict[str, "TransactionDataVatBreakdownValue"],
        "totalVatCent": int,
        "totalCent": int,
        "refundedCent": int,
        "refunds": List["TransactionDataRefundsItem"],
        "status": Literal["CREATED", "PENDING_PAYMENT", "SUCCESS", "UNLOADED", "CANCELLED"],
        "refundStatus": NotRequired[Literal["pending", "done", "failed"]],
        "createdAt": int,
        "completedAt": NotRequired[int],
        "receiptUrl": NotRequired[str],
        "receiptQrCode": NotRequired[str],
        "tse": Dict[str, str],
        "till": NotRequired["TransactionDataTill"],
        "fiscal": NotRequired[str],
        "securityTagMode": NotRequired[Literal["none", "manual", "station", "rfid"]],
        "securityTagStatus": NotRequired[Literal["pending", "deactivated"]],
        "securityTagHint": NotRequired[str],
    },
)

UpdateAccountSettingsRequest = TypedDict(
    "UpdateAccountSettingsRequest",
    {
        "acceptUpc": NotRequired[bool],
    },
)

UpdateAccountSettingsResponse = TypedDict(
    "UpdateAccountSettingsResponse",
    {
        "success": Literal[True],
        "acceptUpc": bool,
    },
)

UpdateClickCollectStatusRequest = TypedDict(
    "UpdateClickCollectStatusRequest",
    {
        "orderId": str,
        "status": Literal["accepted", "confirmed", "preparing", "ready", "picked_up", "cancelled"],
        "pickupCode": NotRequired[str],
        "estimatedPickupAt": NotRequired[str],
        "reason": NotRequired[str],
        "paid": NotRequired[bool],
        "lockerDeviceId": NotRequired[str],
        "epcs": NotRequired[List[str]],
        "tagUids": NotRequired[List[str]],
        "tagIds": NotRequired[List[str]],
    },
)

UpdateClickCollectStatusResponseItemsItemReservedTagsItem = TypedDict(
    "UpdateClickCollectStatusResponseItemsItemReservedTagsItem",
    {
        "epc": NotRequired[str],
        "tagUid": NotRequired[str],
        "tagId": NotRequired[str],
    },
)

UpdateClickCollectStatusResponseItemsItem = TypedDict(
    "UpdateClickCollectStatusResponseItemsItem",
    {
        "productId": str,
        "ean": str,
        "name": str,
        "price": float,
        "quantity": int,
        "reservedTags": List["UpdateClickCollectStatusResponseItemsItemReservedTagsItem"],
    },
)

UpdateClickCollectStatusResponse = TypedDict(
    "UpdateClickCollectStatusResponse",
    {
        "orderId": str,
        "storeId": str,
        "userId": str,
        "status": Literal["pending", "confirmed", "preparing", "ready", "picked_up", "cancelled"],
        "items": List["UpdateClickCollectStatusResponseItemsItem"],
        "total": float,
        "currency": str,
        "note": NotRequired[str],
        "pickupTime": NotRequired[str],
        "estimatedPickupAt": str,
        "reason": NotRequired[str],
        "createdAt": str,
        "updatedAt": str,
        "pickedUpAt": NotRequired[str],
        "paid": bool,
        "lockerDeviceId": NotRequired[str],
        "success": Literal[True],
    },
)

UpdateDeviceRequestHealth = TypedDict(
    "UpdateDeviceRequestHealth",
    {
        "state": Literal["ready", "degraded", "absent", "unknown"],
        "unknownBecause": NotRequired[Literal["no_agent", "agent_offline", "not_reported"]],
        "detail": NotRequired[str],
        "since": NotRequired[str],
        "readsTags": NotRequired[bool],
    },
)

UpdateDeviceRequest = TypedDict(
    "UpdateDeviceRequest",
    {
        "deviceId": str,
        "name": NotRequired[str],
        "zoneId": NotRequired[str],
        "laneId": NotRequired[str],
        "gateId": NotRequired[str],
        "tillId": NotRequired[str],
        "firmwareVersion": NotRequired[str],
        "canDeactivateLabel": NotRequired[bool],
        "canDetachHardTag": NotRequired[bool],
        "canReadReceiptQr": NotRequired[bool],
        "canReadUhfRfid": NotRequired[bool],
        "canReadHfNfc": NotRequired[bool],
        "canUnlockFixture": NotRequired[bool],
        "supportsOfflineAuth": NotRequired[bool],
        "supportedTechnologies": NotRequired[List[Literal["am", "rf", "uhf_rfid", "hf_nfc", "mechanical_lock"]]],
        "workflowType": NotRequired[Literal["staff_assisted", "self_service", "automatic_exit", "pos_integrated"]],
        "agentId": NotRequired[str],
        "health": NotRequired["UpdateDeviceRequestHealth"],
        "storeId": NotRequired[str],
        "deviceType": NotRequired[str],
        "registeredAt": NotRequired[str],
        "lastSeenAt": NotRequired[str],
        "decommissionedAt": NotRequired[str],
        "movingToAgentId": NotRequired[str],
    },
)

UpdateDeviceResponse = TypedDict(
    "UpdateDeviceResponse",
    {
        "deviceId": str,
        "deviceType": Literal["pos_deactivator", "self_checkout_detacher", "exit_gate", "handheld_reader", "cabinet_unlocker"],
        "storeId": str,
        "name": NotRequired[str],
        "zoneId": NotRequired[str],
        "laneId": NotRequired[str],
        "gateId": NotRequired[str],
        "tillId": NotRequired[str],
        "agentId": NotRequired[str],
        "movingToAgentId": NotRequired[str],
        "firmwareVersion": NotRequired[str],
        "canDeactivateLabel": bool,
        "canDetachHardTag": bool,
        "canReadReceiptQr": bool,
        "canReadUhfRfid": bool,
        "canReadHfNfc": bool,
        "canUnlockFixture": bool,
        "supportsOfflineAuth": bool,
        "supportedTechnologies": List[Literal["am", "rf", "uhf_rfid", "hf_nfc", "mechanical_lock"]],
        "workflowType": Literal["staff_assisted", "self_service", "automatic_exit", "pos_integrated"],
        "registeredAt": str,
        "lastSeenAt": str,
        "decommissionedAt": NotRequired[str],
        "success": Literal[True],
    },
)

UpdateItemStatusRequest = TypedDict(
    "UpdateItemStatusRequest",
    {
        "storeId": str,
        "tagId": NotRequired[str],
        "epc": NotRequired[str],
        "tagUid": NotRequired[str],
        "itemLineId": NotRequired[str],
        "itemStatus": Literal["sellable", "paid", "reserved_bopis", "picked_up", "returned", "transfer_in_transit", "cancelled", "exception_hold"],
        "reason": NotRequired[str],
        "operatorId": NotRequired[str],
    },
)

UpdateItemStatusResponse = TypedDict(
    "UpdateItemStatusResponse",
    {
        "itemId": str,
        "storeId": str,
        "epc": NotRequired[str],
        "tagUid": NotRequired[str],
        "tagId": NotRequired[str],
        "tagTechnology": NotRequired[str],
        "protectionTechnology": NotRequired[str],
        "serialNumber": NotRequired[str],
        "ean": NotRequired[str],
        "brand": NotRequired[str],
        "category": NotRequired[str],
        "price": NotRequired[float],
        "lot": NotRequired[str],
        "expiry": NotRequired[str],
        "serial": NotRequired[str],
        "itemStatus": Literal["sellable", "paid", "reserved_bopis", "picked_up", "returned", "transfer_in_transit", "cancelled", "exception_hold"],
        "recalled": NotRequired[Literal[True]],
        "product": NotRequired["Product"],
        "purchaseId": NotRequired[str],
        "itemLineId": NotRequired[str],
        "updatedAt": str,
        "success": Literal[True],
    },
)

UpdateLoyaltyProgramRequestRewardsItem = TypedDict(
    "UpdateLoyaltyProgramRequestRewardsItem",
    {
        "rewardId": NotRequired[str],
        "name": str,
        "cost": float,
    },
)

UpdateLoyaltyProgramRequestTiersItem = TypedDict(
    "UpdateLoyaltyProgramRequestTiersItem",
    {
        "name": str,
        "threshold": float,
    },
)

UpdateLoyaltyProgramRequest = TypedDict(
    "UpdateLoyaltyProgramRequest",
    {
        "programId": str,
        "name": NotRequired[str],
        "earningMethods": NotRequired[List[Literal["qr_checkin", "store_checkin", "scan_and_go", "click_collect", "till"]]],
        "rewards": NotRequired[List["UpdateLoyaltyProgramRequestRewardsItem"]],
        "tiers": NotRequired[List["UpdateLoyaltyProgramRequestTiersItem"]],
        "pointsPerEuro": NotRequired[float],
        "stampsPerVisit": NotRequired[int],
        "cashbackPercent": NotRequired[float],
        "pointsValidMonths": NotRequired[int],
        "isActive": NotRequired[bool],
        "storeId": NotRequired[str],
        "type": NotRequired[str],
        "checkInCode": NotRequired[str],
        "qrCodeImage": NotRequired[str],
        "createdAt": NotRequired[str],
        "updatedAt": NotRequired[str],
    },
)

UpdateLoyaltyProgramResponseRewardsItem = TypedDict(
    "UpdateLoyaltyProgramResponseRewardsItem",
    {
        "rewardId": str,
        "name": str,
        "cost": float,
    },
)

UpdateLoyaltyProgramResponseTiersItem = TypedDict(
    "UpdateLoyaltyProgramResponseTiersItem",
    {
        "name": str,
        "threshold": float,
    },
)

UpdateLoyaltyProgramResponse = TypedDict(
    "UpdateLoyaltyProgramResponse",
    {
        "programId": str,
        "storeId": str,
        "name": str,
        "type": Literal["stamps", "points", "cashback", "tier"],
        "earningMethods": List[Literal["qr_checkin", "store_checkin", "scan_and_go", "click_collect", "till"]],
        "rewards": List["UpdateLoyaltyProgramResponseRewardsItem"],
        "tiers": List["UpdateLoyaltyProgramResponseTiersItem"],
        "pointsPerEuro": float,
        "stampsPerVisit": int,
        "cashbackPercent": float,
        "pointsValidMonths": int,
        "isActive": bool,
        "checkInCode": str,
        "createdAt": str,
        "updatedAt": str,
        "success": Literal[True],
    },
)

UpdateOfferRequestProductsItemPricesItem = TypedDict(
    "UpdateOfferRequestProductsItemPricesItem",
    {
        "storeId": str,
        "originalPrice": NotRequired[float],
        "discountPrice": float,
    },
)

UpdateOfferRequestProductsItem = TypedDict(
    "UpdateOfferRequestProductsItem",
    {
        "name": NotRequired[str],
        "price": NotRequired[float],
        "oldPrice": NotRequired[float],
        "discountPercentage": NotRequired[float],
        "category": NotRequired[str],
        "manufacturer": NotRequired[str],
        "unit": NotRequired[str],
        "description": NotRequired[str],
        "ean": NotRequired[str],
        "discountPrice": NotRequired[float],
        "originalPrice": NotRequired[float],
        "prices": NotRequired[List["UpdateOfferRequestProductsItemPricesItem"]],
    },
)

UpdateOfferRequest = TypedDict(
    "UpdateOfferRequest",
    {
        "offerId": NotRequired[str],
        "id": NotRequired[str],
        "title": NotRequired[str],
        "products": NotRequired[List["UpdateOfferRequestProductsItem"]],
        "storeIds": NotRequired[List[str]],
        "validFrom": NotRequired[str],
        "validTo": NotRequired[str],
        "validUntil": NotRequired[str],
        "merchantColor": NotRequired[str],
        "tags": NotRequired[List[str]],
        "description": NotRequired[str],
        "imageUrl": NotRequired[str],
        "quantity": NotRequired[int],
        "offerIds": NotRequired[List[str]],
        "groupId": NotRequired[str],
        "storeCount": NotRequired[int],
        "productCount": NotRequired[int],
        "isActive": NotRequired[bool],
        "status": NotRequired[Literal["DRAFT", "ACTIVE", "EXPIRED", "ARCHIVED"]],
        "scope": NotRequired[Literal["LOCAL", "MULTI_STORE", "CITY_WIDE", "REGIONAL", "NATIONAL"]],
        "discountPercent": NotRequired[float],
        "clickCount": NotRequired[int],
        "favoritedCount": NotRequired[int],
        "createdAt": NotRequired[str],
    },
)

UpdateOfferResponse = TypedDict(
    "UpdateOfferResponse",
    {
        "success": Literal[True],
        "_sandbox": NotRequired[Literal[True]],
        "offerId": str,
        "updatedFields": List[str],
        "siblingUpdates": int,
        "addedStores": List[str],
        "removedStores": List[str],
    },
)

UpdateOperatorRequest = TypedDict(
    "UpdateOperatorRequest",
    {
        "operatorId": str,
        "pin": NotRequired[str],
        "newBadge": NotRequired[bool],
    },
)

UpdateOperatorResponse = TypedDict(
    "UpdateOperatorResponse",
    {
        "operatorId": str,
        "storeId": str,
        "name": str,
        "hasPin": bool,
        "hasCard": bool,
        "createdAt": str,
        "success": Literal[True],
        "badge": NotRequired[str],
    },
)

UpdateProductRequestNutrition = TypedDict(
    "UpdateProductRequestNutrition",
    {
        "calories": NotRequired[float],
        "fat": NotRequired[float],
        "saturatedFat": NotRequired[float],
        "carbohydrates": NotRequired[float],
        "sugar": NotRequired[float],
        "protein": NotRequired[float],
        "fiber": NotRequired[float],
        "salt": NotRequired[float],
        "nutriScore": NotRequired[Literal["A", "B", "C", "D", "E"]],
        "per": NotRequired[Literal["100g", "100ml"]],
        "source": NotRequired[Literal["merchant", "reference", "community"]],
        "confidence": NotRequired[float],
    },
)

UpdateProductRequestFlags = TypedDict(
    "UpdateProductRequestFlags",
    {
        "requiresHumanVerification": bool,
    },
)

UpdateProductRequestMedia = TypedDict(
    "UpdateProductRequestMedia",
    {
        "snapshot": str,
    },
)

UpdateProductRequest = TypedDict(
    "UpdateProductRequest",
    {
        "storeId": str,
        "productId": NotRequired[str],
        "id": NotRequired[str],
        "barcode": NotRequired[str],
        "ean": NotRequired[str],
        "name": NotRequired[str],
        "price": NotRequired[float],
        "vat": NotRequired[Literal[7, 19]],
        "oldPrice": NotRequired[float],
        "category": NotRequired[str],
        "unit": NotRequired[str],
        "brand": NotRequired[str],
        "description": NotRequired[str],
        "imageUrl": NotRequired[str],
        "weight": NotRequired[str],
        "isOrganic": NotRequired[bool],
        "isVegan": NotRequired[bool],
        "allergens": NotRequired[List[str]],
        "deposit": NotRequired[float],
        "depositVat": NotRequired[Literal[7, 19]],
        "nutrition": NotRequired["UpdateProductRequestNutrition"],
        "tagged": NotRequired[bool],
        "flags": NotRequired["UpdateProductRequestFlags"],
        "success": NotRequired[Literal[True]],
        "media": NotRequired["UpdateProductRequestMedia"],
        "fromPos": NotRequired[bool],
        "posProductId": NotRequired[str],
        "nameLower": NotRequired[str],
        "brandLower": NotRequired[str],
        "createdAt": NotRequired[str],
        "updatedAt": NotRequired[str],
    },
)

UpdateProductResponseNutrition = TypedDict(
    "UpdateProductResponseNutrition",
    {
        "calories": NotRequired[float],
        "fat": NotRequired[float],
        "saturatedFat": NotRequired[float],
        "carbohydrates": NotRequired[float],
        "sugar": NotRequired[float],
        "protein": NotRequired[float],
        "fiber": NotRequired[float],
        "salt": NotRequired[float],
        "nutriScore": NotRequired[Literal["A", "B", "C", "D", "E"]],
        "per": Literal["100g", "100ml"],
        "source": NotRequired[Literal["merchant", "reference", "community"]],
        "confidence": NotRequired[float],
    },
)

UpdateProductResponseMedia = TypedDict(
    "UpdateProductResponseMedia",
    {
        "snapshot": str,
    },
)

UpdateProductResponseFlags = TypedDict(
    "UpdateProductResponseFlags",
    {
        "requiresHumanVerification": bool,
    },
)

UpdateProductResponse = TypedDict(
    "UpdateProductResponse",
    {
        "productId": str,
        "ean": str,
        "name": str,
        "price": float,
        "oldPrice": NotRequired[float],
        "vat": Literal[7, 19],
        "storeId": NotRequired[str],
        "category": NotRequired[str],
        "unit": NotRequired[str],
        "brand": NotRequired[str],
        "description": NotRequired[str],
        "imageUrl": NotRequired[str],
        "weight": NotRequired[str],
        "isOrganic": NotRequired[bool],
        "isVegan": NotRequired[bool],
        "allergens": NotRequired[List[str]],
        "deposit": NotRequired[float],
        "depositVat": NotRequired[Literal[7, 19]],
        "nutrition": NotRequired["UpdateProductResponseNutrition"],
        "media": NotRequired["UpdateProductResponseMedia"],
        "tagged": bool,
        "flags": "UpdateProductResponseFlags",
        "fromPos": bool,
        "posProductId": str,
        "nameLower": str,
        "brandLower": NotRequired[str],
        "createdAt": str,
        "updatedAt": str,
        "success": Literal[True],
    },
)

UpdateProfileRequest = TypedDict(
    "UpdateProfileRequest",
    {
        "name": str,
        "email": NotRequired[str],
        "status": NotRequired[Literal["invited", "active"]],
        "createdAt": NotRequired[str],
        "lastSignInAt": NotRequired[str],
        "invitationExpiresAt": NotRequired[str],
        "userId": NotRequired[str],
        "role": NotRequired[Literal["owner", "admin", "manager", "associate", "viewer", "platform"]],
        "storeIds": NotRequired[List[str]],
        "sandboxOnly": NotRequired[bool],
        "account": NotRequired[str],
        "mode": NotRequired[Literal["test", "live"]],
        "mayUseLive": NotRequired[bool],
        "hasSecondFactor": NotRequired[bool],
        "hasPassword": NotRequired[bool],
        "hasAuthenticatorApp": NotRequired[bool],
    },
)

UpdateProfileResponse = TypedDict(
    "UpdateProfileResponse",
    {
        "userId": str,
        "email": str,
        "name": str,
        "role": Literal["owner", "admin", "manager", "associate", "viewer", "platform"],
        "storeIds": NotRequired[List[str]],
        "sandboxOnly": bool,
        "status": Literal["invited", "active"],
        "createdAt": str,
        "lastSignInAt": NotRequired[str],
        "invitationExpiresAt": NotRequired[str],
        "success": Literal[True],
    },
)

UpdateProtectionPolicyRequestPolicyOffline = TypedDict(
    "UpdateProtectionPolicyRequestPolicyOffline",
    {
        "maxRiskClass": NotRequired[int],
        "hardCount": NotRequired[int],
        "maxIsolatedSeconds": NotRequired[int],
        "storeBound": NotRequired[Literal["risk", "deny"]],
    },
)

UpdateProtectionPolicyRequestPolicyGateSeverityItem = TypedDict(
    "UpdateProtectionPolicyRequestPolicyGateSeverityItem",
    {
        "category": NotRequired[str],
        "fromValue": NotRequired[float],
        "severity": Literal["silent", "notify", "siren"],
    },
)

UpdateProtectionPolicyRequestPolicyGateBulk = TypedDict(
    "UpdateProtectionPolicyRequestPolicyGateBulk",
    {
        "tags": NotRequired[int],
        "seconds": NotRequired[int],
    },
)

UpdateProtectionPolicyRequestPolicyGateReplenishment = TypedDict(
    "UpdateProtectionPolicyRequestPolicyGateReplenishment",
    {
        "tags": NotRequired[int],
        "seconds": NotRequired[int],
        "muteSeconds": NotRequired[int],
    },
)

UpdateProtectionPolicyRequestPolicyGate = TypedDict(
    "UpdateProtectionPolicyRequestPolicyGate",
    {
        "severity": NotRequired[List["UpdateProtectionPolicyRequestPolicyGateSeverityItem"]],
        "ownPrefixes": NotRequired[List[str]],
        "ownMasks": NotRequired[List[str]],
        "alarmMasks": NotRequired[List[str]],
        "bulk": NotRequired["UpdateProtectionPolicyRequestPolicyGateBulk"],
        "replenishment": NotRequired["UpdateProtectionPolicyRequestPolicyGateReplenishment"],
    },
)

UpdateProtectionPolicyRequestPolicyTillSales = TypedDict(
    "UpdateProtectionPolicyRequestPolicyTillSales",
    {
        "agents": NotRequired[List[str]],
        "salesPerHour": NotRequired[int],
        "valuePerHour": NotRequired[float],
        "codes": NotRequired[Literal["barrier", "release"]],
        "passByProduct": NotRequired[int],
    },
)

UpdateProtectionPolicyRequestPolicy = TypedDict(
    "UpdateProtectionPolicyRequestPolicy",
    {
        "allowedActionsByCategory": NotRequired[Dict[str, Dict[str, List[Literal["staff_assisted", "self_service", "automatic_exit", "pos_integrated"]]]]],
        "requiresManualOverrideAboveValue": NotRequired[float],
        "requiresStaffForBrand": NotRequired[List[str]],
        "offline": NotRequired["UpdateProtectionPolicyRequestPolicyOffline"],
        "unknownTag": NotRequired[Literal["ignore", "notify", "siren"]],
        "gate": NotRequired["UpdateProtectionPolicyRequestPolicyGate"],
        "tillSales": NotRequired["UpdateProtectionPolicyRequestPolicyTillSales"],
        "operatorOverridesPerHour": NotRequired[int],
        "spotCheckRate": NotRequired[float],
        "minAgent": NotRequired[str],
        "home": NotRequired[str],
        "homeEpoch": NotRequired[int],
    },
)

UpdateProtectionPolicyRequest = TypedDict(
    "UpdateProtectionPolicyRequest",
    {
        "storeId": str,
        "policy": "UpdateProtectionPolicyRequestPolicy",
        "expectedVersion": NotRequired[int],
    },
)

UpdateProtectionPolicyResponsePolicyOffline = TypedDict(
    "UpdateProtectionPolicyResponsePolicyOffline",
    {
        "maxRiskClass": int,
        "hardCount": int,
        "maxIsolatedSeconds": int,
        "storeBound": Literal["risk", "deny"],
    },
)

UpdateProtectionPolicyResponsePolicyGateSeverityItem = TypedDict(
    "UpdateProtectionPolicyResponsePolicyGateSeverityItem",
    {
        "category": NotRequired[str],
        "fromValue": NotRequired[float],
        "severity": Literal["silent", "notify", "siren"],
    },
)

UpdateProtectionPolicyResponsePolicyGateBulk = TypedDict(
    "UpdateProtectionPolicyResponsePolicyGateBulk",
    {
        "tags": int,
        "seconds": int,
    },
)

UpdateProtectionPolicyResponsePolicyGateReplenishment = TypedDict(
    "UpdateProtectionPolicyResponsePolicyGateReplenishment",
    {
        "tags": int,
        "seconds": int,
        "muteSeconds": int,
    },
)

UpdateProtectionPolicyResponsePolicyGate = TypedDict(
    "UpdateProtectionPolicyResponsePolicyGate",
    {
        "severity": List["UpdateProtectionPolicyResponsePolicyGateSeverityItem"],
        "ownPrefixes": List[str],
        "ownMasks": List[str],
        "alarmMasks": List[str],
        "bulk": "UpdateProtectionPolicyResponsePolicyGateBulk",
        "replenishment": "UpdateProtectionPolicyResponsePolicyGateReplenishment",
    },
)

UpdateProtectionPolicyResponsePolicyTillSales = TypedDict(
    "UpdateProtectionPolicyResponsePolicyTillSales",
    {
        "agents": List[str],
        "salesPerHour": int,
        "valuePerHour": float,
        "codes": Literal["barrier", "release"],
        "passByProduct": int,
    },
)

UpdateProtectionPolicyResponsePolicy = TypedDict(
    "UpdateProtectionPolicyResponsePolicy",
    {
        "allowedActionsByCategory": Dict[str, Dict[str, List[Literal["staff_assisted", "self_service", "automatic_exit", "pos_integrated"]]]],
        "requiresManualOverrideAboveValue": float,
        "requiresStaffForBrand": List[str],
        "offline": "UpdateProtectionPolicyResponsePolicyOffline",
        "unknownTag": Literal["ignore", "notify", "siren"],
        "gate": "UpdateProtectionPolicyResponsePolicyGate",
        "tillSales": "UpdateProtectionPolicyResponsePolicyTillSales",
        "operatorOverridesPerHour": int,
        "spotCheckRate": float,
        "minAgent": NotRequired[str],
        "home": str,
        "homeEpoch": int,
    },
)

UpdateProtectionPolicyResponse = TypedDict(
    "UpdateProtectionPolicyResponse",
    {
        "success": Literal[True],
        "policy": "UpdateProtectionPolicyResponsePolicy",
        "version": int,
        "worstCaseLoss": float,
        "warnings": NotRequired[List[str]],
    },
)

UpdateStoreRequestName = TypedDict(
    "UpdateStoreRequestName",
    {
        "legal": NotRequired[str],
        "trading": NotRequired[str],
    },
)

UpdateStoreRequestAddress = TypedDict(
    "UpdateStoreRequestAddress",
    {
        "street": NotRequired[str],
        "city": NotRequired[str],
        "zip": NotRequired[str],
        "postalCode": NotRequired[str],
        "country": NotRequired[str],
        "countryCode": NotRequired[str],
    },
)

UpdateStoreRequestCoordinates = TypedDict(
    "UpdateStoreRequestCoordinates",
    {
        "lat": NotRequired[float],
        "lng": NotRequired[float],
        "latitude": NotRequired[float],
        "longitude": NotRequired[float],
    },
)

UpdateStoreRequestMedia = TypedDict(
    "UpdateStoreRequestMedia",
    {
        "logo": NotRequired[str],
        "cover": NotRequired[str],
    },
)

UpdateStoreRequestSocial = TypedDict(
    "UpdateStoreRequestSocial",
    {
        "instagram": NotRequired[str],
        "facebook": NotRequired[str],
        "tiktok": NotRequired[str],
    },
)

UpdateStoreRequestOpeningHours = TypedDict(
    "UpdateStoreRequestOpeningHours",
    {
        "monday": NotRequired[str],
        "tuesday": NotRequired[str],
        "wednesday": NotRequired[str],
        "thursday": NotRequired[str],
        "friday": NotRequired[str],
        "saturday": NotRequired[str],
        "sunday": NotRequired[str],
    },
)

UpdateStoreRequest = TypedDict(
    "UpdateStoreRequest",
    {
        "storeId": str,
        "companyName": NotRequired[str],
        "tradingName": NotRequired[str],
        "name": NotRequired["UpdateStoreRequestName"],
        "address": NotRequired["UpdateStoreRequestAddress"],
        "coordinates": NotRequired["UpdateStoreRequestCoordinates"],
        "phone": NotRequired[str],
        "email": NotRequired[str],
        "website": NotRequired[str],
        "media": NotRequired["UpdateStoreRequestMedia"],
        "social": NotRequired["UpdateStoreRequestSocial"],
        "openingHours": NotRequired["UpdateStoreRequestOpeningHours"],
        "pspAccountId": NotRequired[str],
        "hasScanAndGo": NotRequired[bool],
        "hasOffers": NotRequired[bool],
        "securityTagMode": NotRequired[Literal["none", "manual", "station", "rfid"]],
        "securityTagHint": NotRequired[str],
        "protectionTechnology": NotRequired[Literal["am", "rf", "uhf_rfid", "hf_nfc", "mechanical_lock"]],
        "deviceType": NotRequired[Literal["pos_deactivator", "self_checkout_detacher", "exit_gate", "handheld_reader", "cabinet_unlocker"]],
        "workflowType": NotRequired[Literal["staff_assisted", "self_service", "automatic_exit", "pos_integrated"]],
        "inStoreCodes": NotRequired[List[str]],
        "gln": NotRequired[str],
        "success": NotRequired[Literal[True]],
        "id": NotRequired[str],
        "package": NotRequired[str],
        "mode": NotRequired[Literal["demo", "live"]],
        "rating": NotRequired[float],
        "receiptCount": NotRequired[int],
    },
)

UpdateStoreResponseAddress = TypedDict(
    "UpdateStoreResponseAddress",
    {
        "street": str,
        "city": str,
        "zip": str,
        "country": str,
    },
)

UpdateStoreResponseCoordinates = TypedDict(
    "UpdateStoreResponseCoordinates",
    {
        "lat": float,
        "lng": float,
    },
)

UpdateStoreResponse = TypedDict(
    "UpdateStoreResponse",
    {
        "storeId": str,
        "companyName": str,
        "tradingName": str,
        "address": "UpdateStoreResponseAddress",
        "coordinates": NotRequired["UpdateStoreResponseCoordinates"],
        "hasScanAndGo": bool,
        "package": Literal["DISCOVER", "ASSIST", "GO", "GROW", "PRIME"],
        "securityTagMode": Literal["none", "manual", "station", "rfid"],
        "securityTagHint": NotRequired[str],
        "protectionTechnology": NotRequired[Literal["am", "rf", "uhf_rfid", "hf_nfc", "mechanical_lock"]],
        "deviceType": NotRequired[Literal["pos_deactivator", "self_checkout_detacher", "exit_gate", "handheld_reader", "cabinet_unlocker"]],
        "workflowType": NotRequired[Literal["staff_assisted", "self_service", "automatic_exit", "pos_integrated"]],
        "gln": NotRequired[str],
        "inStoreCodes": NotRequired[List[str]],
        "success": Literal[True],
    },
)

UpdateUserRequest = TypedDict(
    "UpdateUserRequest",
    {
        "userId": str,
        "role": NotRequired[Literal["owner", "admin", "manager", "associate", "viewer"]],
        "storeIds": NotRequired[List[str]],
        "sandboxOnly": NotRequired[bool],
        "name": NotRequired[str],
        "email": NotRequired[str],
        "status": NotRequired[Literal["invited", "active"]],
        "createdAt": NotRequired[str],
        "lastSignInAt": NotRequired[str],
        "invitationExpiresAt": NotRequired[str],
    },
)

UpdateUserResponse = TypedDict(
    "UpdateUserResponse",
    {
        "userId": str,
        "email": str,
        "name": str,
        "role": Literal["owner", "admin", "manager", "associate", "viewer", "platform"],
        "storeIds": NotRequired[List[str]],
        "sandboxOnly": bool,
        "status": Literal["invited", "active"],
        "createdAt": str,
        "lastSignInAt": NotRequired[str],
        "invitationExpiresAt": NotRequired[str],
        "success": Literal[True],
    },
)

UpdateWebhookRequest = TypedDict(
    "UpdateWebhookRequest",
    {
        "webhookId": str,
        "url": NotRequired[str],
        "events": NotRequired[List[Literal["*", "checkout.completed", "securityTag.deactivated", "product.created", "product.bulk_imported", "offer.published", "clickcollect.order", "clickcollect.status_changed", "clickcollect.picked_up", "payment.created", "payment.refunded", "loyalty.points_earned", "loyalty.points_redeemed", "loyalty.enrollment", "loyalty.reward_unlocked", "loyalty.tier_changed", "loyalty.qr_earned", "loyalty.checkin_earned", "integration.pos.synced", "integration.pos.pushed", "integration.erp.synced", "integration.erp.pushed", "integration.psp.configured", "protection.authorization.requested", "protection.authorization.granted", "protection.authorization.denied", "protection.action.completed", "protection.action.failed", "protection.device.offline", "protection.exception.raised", "webhook.test"]]],
        "enabled": NotRequired[bool],
        "secret": NotRequired[str],
        "storeId": NotRequired[str],
        "disabledReason": NotRequired[Literal["gone", "failing", "switched_off"]],
        "disabledAt": NotRequired[str],
        "failingSince": NotRequired[str],
        "missedAt": NotRequired[str],
        "oldSecretUntil": NotRequired[str],
        "createdAt": NotRequired[str],
        "updatedAt": NotRequired[str],
    },
)

UpdateWebhookResponse = TypedDict(
    "UpdateWebhookResponse",
    {
        "webhookId": str,
        "storeId": NotRequired[str],
        "url": str,
        "events": List[str],
        "enabled": bool,
        "disabledReason": NotRequired[Literal["gone", "failing", "switched_off"]],
        "disabledAt": NotRequired[str],
        "failingSince": NotRequired[str],
        "missedAt": NotRequired[str],
        "oldSecretUntil": NotRequired[str],
        "createdAt": str,
        "updatedAt": str,
        "success": Literal[True],
        "warnings": NotRequired[List[str]],
    },
)

UploadImageToProductForm = TypedDict(
    "UploadImageToProductForm",
    {
        "productId": str,
        "imageBase64": NotRequired[str],
        "snapshot": NotRequired[bytes],
    },
)

UploadImageToProductRequest = TypedDict(
    "UploadImageToProductRequest",
    {
        "productId": str,
        "imageBase64": NotRequired[str],
    },
)

UploadImageToProductResponseMedia = TypedDict(
    "UploadImageToProductResponseMedia",
    {
        "snapshot": str,
    },
)

UploadImageToProductResponse = TypedDict(
    "UploadImageToProductResponse",
    {
        "success": Literal[True],
        "productId": str,
        "imageUrl": str,
        "media": "UploadImageToProductResponseMedia",
        "width": int,
        "height": int,
    },
)

VerifyPickupCodeRequest = TypedDict(
    "VerifyPickupCodeRequest",
    {
        "storeId": str,
        "pickupCode": str,
    },
)

VerifyPickupCodeResponseItemsItemReservedTagsItem = TypedDict(
    "VerifyPickupCodeResponseItemsItemReservedTagsItem",
    {
        "epc": NotRequired[str],
        "tagUid": NotRequired[str],
        "tagId": NotRequired[str],
    },
)

VerifyPickupCodeResponseItemsItem = TypedDict(
    "VerifyPickupCodeResponseItemsItem",
    {
        "productId": str,
        "ean": str,
        "name": str,
        "price": float,
        "quantity": int,
        "reservedTags": List["VerifyPickupCodeResponseItemsItemReservedTagsItem"],
    },
)

VerifyPickupCodeResponse = TypedDict(
    "VerifyPickupCodeResponse",
    {
        "orderId": str,
        "storeId": str,
        "status": Literal["pending", "confirmed", "preparing", "ready", "picked_up", "cancelled"],
        "items": List["VerifyPickupCodeResponseItemsItem"],
        "total": float,
        "currency": str,
        "note": NotRequired[str],
        "pickupTime": NotRequired[str],
        "estimatedPickupAt": str,
        "reason": NotRequired[str],
        "createdAt": str,
        "updatedAt": str,
        "pickedUpAt": NotRequired[str],
        "paid": bool,
        "lockerDeviceId": NotRequired[str],
        "success": Literal[True],
    },
)

VerifyProtectedItemRequest = TypedDict(
    "VerifyProtectedItemRequest",
    {
        "deviceId": str,
        "protectionAction": Literal["deactivate_label", "detach_hard_tag", "suppress_alarm", "authorize_exit", "unlock_fixture", "verify_item_status"],
        "tagId": NotRequired[str],
        "epc": NotRequired[str],
        "tagUid": NotRequired[str],
        "itemLineId": NotRequired[str],
        "purchaseId": NotRequired[str],
        "receiptToken": NotRequired[str],
        "pickupCode": NotRequired[str],
        "authorizationToken": NotRequired[str],
        "deviceType": NotRequired[Literal["pos_deactivator", "self_checkout_detacher", "exit_gate", "handheld_reader", "cabinet_unlocker"]],
        "storeId": NotRequired[str],
        "zoneId": NotRequired[str],
        "gateId": NotRequired[str],
        "laneId": NotRequired[str],
        "operatorId": NotRequired[str],
        "occurredAt": NotRequired[str],
        "firmwareVersion": NotRequired[str],
        "scanSource": NotRequired[Literal["pos", "sco", "exit_gate", "associate_handheld", "customer_phone", "service_desk"]],
        "explain": NotRequired[bool],
    },
)

VerifyProtectedItemResponseTraceItem = TypedDict(
    "VerifyProtectedItemResponseTraceItem",
    {
        "check": Literal["token_invalid", "token_expired", "token_revoked", "device_unknown", "device_revoked", "store_mismatch", "locker_mismatch", "clock_untrusted", "policy_stale", "device_not_capable", "technology_mismatch", "item_unknown", "recalled", "item_not_paid", "no_tagged_goods", "already_redeemed", "authorization_outstanding", "action_not_allowed", "workflow_not_allowed", "manual_assistance_required", "limit_exceeded", "tag_not_read"],
        "passed": bool,
        "detail": str,
    },
)

VerifyProtectedItemResponseReceiptRights = TypedDict(
    "VerifyProtectedItemResponseReceiptRights",
    {
        "cti": str,
        "rightClass": Literal["release", "exit", "open"],
        "ordinals": List[int],
    },
)

VerifyProtectedItemResponse = TypedDict(
    "VerifyProtectedItemResponse",
    {
        "success": Literal[True],
        "authorized": bool,
        "protectionAction": Literal["deactivate_label", "detach_hard_tag", "suppress_alarm", "authorize_exit", "unlock_fixture", "verify_item_status"],
        "itemStatus": Literal["sellable", "paid", "reserved_bopis", "picked_up", "returned", "transfer_in_transit", "cancelled", "exception_hold"],
        "eventId": str,
        "authorizationState": Literal["issued", "redeemed", "expired", "revoked"],
        "authorizationToken": str,
        "expiresAt": str,
        "redeemedAt": str,
        "replayProtectedNonce": str,
        "itemCount": int,
        "reason": NotRequired[Literal["token_invalid", "token_expired", "token_revoked", "device_unknown", "device_revoked", "store_mismatch", "locker_mismatch", "clock_untrusted", "policy_stale", "device_not_capable", "technology_mismatch", "item_unknown", "recalled", "item_not_paid", "no_tagged_goods", "already_redeemed", "authorization_outstanding", "action_not_allowed", "workflow_not_allowed", "manual_assistance_required", "limit_exceeded", "tag_not_read"]],
        "retryAfter": NotRequired[int],
        "warnings": NotRequired[List[str]],
        "trace": NotRequired[List["VerifyProtectedItemResponseTraceItem"]],
        "receiptRights": NotRequired["VerifyProtectedItemResponseReceiptRights"],
    },
)

VerifySecurityTagDeactivationRequest = TypedDict(
    "VerifySecurityTagDeactivationRequest",
    {
        "purchaseId": NotRequired[str],
        "receiptToken": NotRequired[str],
        "deviceId": NotRequired[str],
        "deviceType": NotRequired[Literal["pos_deactivator", "self_checkout_detacher", "exit_gate", "handheld_reader", "cabinet_unlocker"]],
        "storeId": NotRequired[str],
        "zoneId": NotRequired[str],
        "gateId": NotRequired[str],
        "laneId": NotRequired[str],
        "operatorId": NotRequired[str],
        "occurredAt": NotRequired[str],
        "firmwareVersion": NotRequired[str],
        "scanSource": NotRequired[Literal["pos", "sco", "exit_gate", "associate_handheld", "customer_phone", "service_desk"]],
        "explain": NotRequired[bool],
    },
)

VerifySecurityTagDeactivationResponseItemsItem = TypedDict(
    "VerifySecurityTagDeactivationResponseItemsItem",
    {
        "itemLineId": str,
        "productId": NotRequired[str],
        "name": str,
        "quantity": int,
        "taggedUnits": int,
        "openUnits": int,
    },
)

VerifySecurityTagDeactivationResponseStoreData = TypedDict(
    "VerifySecurityTagDeactivationResponseStoreData",
    {
        "id": str,
        "name": str,
        "mode": Literal["demo", "live"],
        "address": str,
        "logo": NotRequired[str],
    },
)

VerifySecurityTagDeactivationResponseTraceItem = TypedDict(
    "VerifySecurityTagDeactivationResponseTraceItem",
    {
        "check": Literal["token_invalid", "token_expired", "token_revoked", "device_unknown", "device_revoked", "store_mismatch", "locker_mismatch", "clock_untrusted", "policy_stale", "device_not_capable", "technology_mismatch", "item_unknown", "recalled", "item_not_paid", "no_tagged_goods", "already_redeemed", "authorization_outstanding", "action_not_allowed", "workflow_not_allowed", "manual_assistance_required", "limit_exceeded", "tag_not_read"],
        "passed": bool,
        "detail": str,
    },
)

VerifySecurityTagDeactivationResponseReceiptRights = TypedDict(
    "VerifySecurityTagDeactivationResponseReceiptRights",
    {
        "cti": str,
        "rightClass": Literal["release", "exit", "open"],
        "ordinals": List[int],
    },
)

VerifySecurityTagDeactivationResponse = TypedDict(
    "VerifySecurityTagDeactivationResponse",
    {
        "success": Literal[True],
        "status": Literal["paid", "CREATED", "PENDING_PAYMENT", "CANCELLED"],
        "items": List["VerifySecurityTagDeactivationResponseItemsItem"],
        "securityTagMode": Literal["none", "manual", "station", "rfid"],
        "securityTagStatus": NotRequired[Literal["pending", "deactivated"]],
        "deactivationAuthorized": bool,
        "storeData": "VerifySecurityTagDeactivationResponseStoreData",
        "protectionAction": NotRequired[Literal["deactivate_label", "detach_hard_tag", "suppress_alarm", "authorize_exit", "unlock_fixture", "verify_item_status"]],
        "eventId": NotRequired[str],
        "authorizationState": Literal["issued", "redeemed", "expired", "revoked"],
        "authorizationToken": str,
        "expiresAt": str,
        "redeemedAt": str,
        "replayProtectedNonce": str,
        "itemCount": int,
        "reason": NotRequired[Literal["token_invalid", "token_expired", "token_revoked", "device_unknown", "device_revoked", "store_mismatch", "locker_mismatch", "clock_untrusted", "policy_stale", "device_not_capable", "technology_mismatch", "item_unknown", "recalled", "item_not_paid", "no_tagged_goods", "already_redeemed", "authorization_outstanding", "action_not_allowed", "workflow_not_allowed", "manual_assistance_required", "limit_exceeded", "tag_not_read"]],
        "retryAfter": NotRequired[int],
        "warnings": NotRequired[List[str]],
        "trace": NotRequired[List["VerifySecurityTagDeactivationResponseTraceItem"]],
        "receiptRights": NotRequired["VerifySecurityTagDeactivationResponseReceiptRights"],
    },
)

VoidSaleRequest = TypedDict(
    "VoidSaleRequest",
    {
        "storeId": str,
        "saleId": str,
        "tillId": NotRequired[str],
        "series": NotRequired[str],
        "reason": NotRequired[str],
    },
)

VoidSaleResponseReleasedItem = TypedDict(
    "VoidSaleResponseReleasedItem",
    {
        "lineId": str,
        "unit": int,
    },
)

VoidSaleResponse = TypedDict(
    "VoidSaleResponse",
    {
        "success": Literal[True],
        "purchaseId": NotRequired[str],
        "waiting": NotRequired[Literal[True]],
        "released": List["VoidSaleResponseReleasedItem"],
    },
)

GetReceiptFromTokenRequest = TypedDict(
    "GetReceiptFromTokenRequest",
    {
        "token": str,
    },
)

#: Operations that may change something: the client sends an Idempotency-Key with them.
CHANGING = frozenset((
    "acceptInvitation",
    "acknowledgeException",
    "addLoyaltyPoints",
    "agentLogin",
    "answerAssistanceRequest",
    "approveCheckout",
    "approveStoreRegistration",
    "beginOpenIdSignIn",
    "beginPasskey",
    "beginPasskeySignIn",
    "beginSecondFactor",
    "bulkImportProducts",
    "callHelpToAlarm",
    "changePassword",
    "checkIn",
    "claimRegistration",
    "cloneOffer",
    "closeStoreDay",
    "completeTestCheckout",
    "configurePSP",
    "confirmSecondFactor",
    "confirmSignIn",
    "createApiKey",
    "createEnrolmentCode",
    "createLoyaltyProgram",
    "createOffer",
    "createSetupCode",
    "createZone",
    "decommissionDevice",
    "deleteOffer",
    "deleteWebhook",
    "disposeAlarm",
    "disposeAlarms",
    "endRecall",
    "endSessions",
    "enrolEdgeAgent",
    "eraseCustomerData",
    "fetchSignedDocuments",
    "finishOpenIdSignIn",
    "getLoyaltyWebhookEvents",
    "importProducts",
    "insertProduct",
    "insertStore",
    "inviteUser",
    "issueLoyaltyCard",
    "loyaltyCheckIn",
    "markPurchaseCancelled",
    "moveReceiptHome",
    "processPayment",
    "pushToERP",
    "pushToPOS",
    "recallProducts",
    "recordEngagement",
    "recordReturns",
    "recordSales",
    "redeemLoyaltyPoints",
    "redeemProtectionAuthorization",
    "redeliverWebhook",
    "refundPayment",
    "registerAlarmNotices",
    "registerDevice",
    "registerDeviceWithCode",
    "registerOperator",
    "registerPasskey",
    "registerProductToStore",
    "registerProtectedItems",
    "registerPushSubscription",
    "registerWebhook",
    "rejectStoreRegistration",
    "removeAlarmNotices",
    "removeOperator",
    "removePasskey",
    "removeProductFromStore",
    "removePushSubscription",
    "removeSecondFactor",
    "removeUser",
    "reportDeviceHeartbeat",
    "reportProtectionEvents",
    "requestAssistance",
    "resolveAgentFork",
    "resolveRedemption",
    "reuseTags",
    "revokeAgent",
    "revokeApiKey",
    "revokeProtectionAuthorization",
    "revokeTill",
    "rollApiKey",
    "rollWebhookSecret",
    "rotateAgentKey",
    "rotateSigningKey",
    "sendTestWebhook",
    "setStock",
    "setStorePackage",
    "signIn",
    "signInWithPasskey",
    "signOut",
    "startCheckout",
    "submitClickCollectOrder",
    "submitStoreRegistration",
    "submitStoreRegistrationRequest",
    "switchMode",
    "syncERP",
    "syncPOS",
    "updateAccountSettings",
    "updateClickCollectStatus",
    "updateDevice",
    "updateItemStatus",
    "updateLoyaltyProgram",
    "updateOffer",
    "updateOperator",
    "updateProduct",
    "updateProfile",
    "updateProtectionPolicy",
    "updateStore",
    "updateUser",
    "updateWebhook",
    "uploadImageToProduct",
    "verifyProtectedItem",
    "verifySecurityTagDeactivation",
    "voidSale",
))
#: Operations that use GET.
READ_BY_GET = frozenset((
    "getReceiptFromToken",
))


class SyncOperations:
    """A method for every operation."""

    def call(self, operation: str, request: Mapping[str, Any], *, idempotency_key: Optional[str] = None) -> Any:
        raise NotImplementedError

    def acceptInvitation(
        self, request: "AcceptInvitationRequest", *, idempotency_key: Optional[str] = None
    ) -> "AcceptInvitationResponse":
        "Accepts an invitation with a password, and signs the user in."
        return cast(
            "AcceptInvitationResponse",
            self.call("acceptInvitation", request, idempotency_key=idempotency_key),
        )

    def acknowledgeException(
        self, request: "AcknowledgeExceptionRequest", *, idempotency_key: Optional[str] = None
    ) -> "AcknowledgeExceptionResponse":
        "Acknowledges an exception."
        return cast(
            "AcknowledgeExceptionResponse",
            self.call("acknowledgeException", request, idempotency_key=idempotency_key),
        )

    def addLoyaltyPoints(
        self, request: "AddLoyaltyPointsRequest", *, idempotency_key: Optional[str] = None
    ) -> "AddLoyaltyPointsResponse":
        "Credits points, stamps or cashback to a customer."
        return cast(
            "AddLoyaltyPointsResponse",
            self.call("addLoyaltyPoints", request, idempotency_key=idempotency_key),
        )

    def agentLogin(
        self, request: "AgentLoginRequest", *, idempotency_key: Optional[str] = None
    ) -> "AgentLoginResponse":
        "Logs an agent in: the first call returns a challenge, the second sends the signed assertion."
        return cast(
            "AgentLoginResponse",
            self.call("agentLogin", request, idempotency_key=idempotency_key),
        )

    def answerAssistanceRequest(
        self, request: "AnswerAssistanceRequestRequest", *, idempotency_key: Optional[str] = None
    ) -> "AnswerAssistanceRequestResponse":
        "Answers a request for help or changes its status."
        return cast(
            "AnswerAssistanceRequestResponse",
            self.call("answerAssistanceRequest", request, idempotency_key=idempotency_key),
        )

    def approveCheckout(
        self, request: "ApproveCheckoutRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "ApproveCheckoutResponse":
        "Records that staff checked a basket that awaits approval, and whether it may be paid."
        return cast(
            "ApproveCheckoutResponse",
            self.call("approveCheckout", request, idempotency_key=idempotency_key),
        )

    def approveStoreRegistration(
        self, request: "ApproveStoreRegistrationRequest", *, idempotency_key: Optional[str] = None
    ) -> "ApproveStoreRegistrationResponse":
        "Approves a registration: creates its store, and its account if the request had no key. For administrators."
        return cast(
            "ApproveStoreRegistrationResponse",
            self.call("approveStoreRegistration", request, idempotency_key=idempotency_key),
        )

    def beginOpenIdSignIn(
        self, request: "BeginOpenIdSignInRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "BeginOpenIdSignInResponse":
        "Starts a sign-in at the OpenID Connect provider of the installation."
        return cast(
            "BeginOpenIdSignInResponse",
            self.call("beginOpenIdSignIn", request, idempotency_key=idempotency_key),
        )

    def beginPasskey(
        self, request: "BeginPasskeyRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "BeginPasskeyResponse":
        "Makes the challenge for a new passkey of the calling user."
        return cast(
            "BeginPasskeyResponse",
            self.call("beginPasskey", request, idempotency_key=idempotency_key),
        )

    def beginPasskeySignIn(
        self, request: "BeginPasskeySignInRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "BeginPasskeySignInResponse":
        "Makes the challenge for a sign-in with a passkey."
        return cast(
            "BeginPasskeySignInResponse",
            self.call("beginPasskeySignIn", request, idempotency_key=idempotency_key),
        )

    def beginSecondFactor(
        self, request: "BeginSecondFactorRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "BeginSecondFactorResponse":
        "Makes the secret for an authenticator app of the calling user."
        return cast(
            "BeginSecondFactorResponse",
            self.call("beginSecondFactor", request, idempotency_key=idempotency_key),
        )

    def bulkImportProducts(
        self, request: "BulkImportProductsRequest", *, idempotency_key: Optional[str] = None
    ) -> "BulkImportProductsResponse":
        "Adds up to 500 products to a store, or changes those that it already sells."
        return cast(
            "BulkImportProductsResponse",
            self.call("bulkImportProducts", request, idempotency_key=idempotency_key),
        )

    def callHelpToAlarm(
        self, request: "CallHelpToAlarmRequest", *, idempotency_key: Optional[str] = None
    ) -> "CallHelpToAlarmResponse":
        "Calls colleagues to a gate that alarmed."
        return cast(
            "CallHelpToAlarmResponse",
            self.call("callHelpToAlarm", request, idempotency_key=idempotency_key),
        )

    def changePassword(
        self, request: "ChangePasswordRequest", *, idempotency_key: Optional[str] = None
    ) -> "ChangePasswordResponse":
        "Changes the password of the calling user. Ends all other sessions."
        return cast(
            "ChangePasswordResponse",
            self.call("changePassword", request, idempotency_key=idempotency_key),
        )

    def checkIn(
        self, request: "CheckInRequest", *, idempotency_key: Optional[str] = None
    ) -> "CheckInResponse":
        "Opens a shopping session in a store."
        return cast(
            "CheckInResponse",
            self.call("checkIn", request, idempotency_key=idempotency_key),
        )

    def claimRegistration(
        self, request: "ClaimRegistrationRequest", *, idempotency_key: Optional[str] = None
    ) -> "ClaimRegistrationResponse":
        "Returns the keys of an approved request: the test keys once, and the first live secret key after the first live store is approved."
        return cast(
            "ClaimRegistrationResponse",
            self.call("claimRegistration", request, idempotency_key=idempotency_key),
        )

    def cloneOffer(
        self, request: "CloneOfferRequest", *, idempotency_key: Optional[str] = None
    ) -> "CloneOfferResponse":
        "Copies an offer to other stores, optionally with adjusted prices."
        return cast(
            "CloneOfferResponse",
            self.call("cloneOffer", request, idempotency_key=idempotency_key),
        )

    def closeStoreDay(
        self, request: "CloseStoreDayRequest", *, idempotency_key: Optional[str] = None
    ) -> "CloseStoreDayResponse":
        "Closes the days of a store since its last closing, permanently."
        return cast(
            "CloseStoreDayResponse",
            self.call("closeStoreDay", request, idempotency_key=idempotency_key),
        )

    def completeTestCheckout(
        self, request: "CompleteTestCheckoutRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "CompleteTestCheckoutResponse":
        "Ends a test checkout without its test page. Test keys only."
        return cast(
            "CompleteTestCheckoutResponse",
            self.call("completeTestCheckout", request, idempotency_key=idempotency_key),
        )

    def configurePSP(
        self, request: "ConfigurePSPRequest", *, idempotency_key: Optional[str] = None
    ) -> "ConfigurePSPResponse":
        "Sets the payment service provider of a store."
        return cast(
            "ConfigurePSPResponse",
            self.call("configurePSP", request, idempotency_key=idempotency_key),
        )

    def confirmSecondFactor(
        self, request: "ConfirmSecondFactorRequest", *, idempotency_key: Optional[str] = None
    ) -> "ConfirmSecondFactorResponse":
        "Confirms the authenticator app with a code. Ends all other sessions."
        return cast(
            "ConfirmSecondFactorResponse",
            self.call("confirmSecondFactor", request, idempotency_key=idempotency_key),
        )

    def confirmSignIn(
        self, request: "ConfirmSignInRequest", *, idempotency_key: Optional[str] = None
    ) -> "ConfirmSignInResponse":
        "Completes a sign-in with the second factor."
        return cast(
            "ConfirmSignInResponse",
            self.call("confirmSignIn", request, idempotency_key=idempotency_key),
        )

    def createApiKey(
        self, request: "CreateApiKeyRequest", *, idempotency_key: Optional[str] = None
    ) -> "CreateApiKeyResponse":
        "Creates a key in the mode of the calling key. The response is the only one that shows it."
        return cast(
            "CreateApiKeyResponse",
            self.call("createApiKey", request, idempotency_key=idempotency_key),
        )

    def createEnrolmentCode(
        self, request: "CreateEnrolmentCodeRequest", *, idempotency_key: Optional[str] = None
    ) -> "CreateEnrolmentCodeResponse":
        "Creates a code with which one edge agent enrols in a store."
        return cast(
            "CreateEnrolmentCodeResponse",
            self.call("createEnrolmentCode", request, idempotency_key=idempotency_key),
        )

    def createLoyaltyProgram(
        self, request: "CreateLoyaltyProgramRequest", *, idempotency_key: Optional[str] = None
    ) -> "CreateLoyaltyProgramResponse":
        "Creates a loyalty program for a store."
        return cast(
            "CreateLoyaltyProgramResponse",
            self.call("createLoyaltyProgram", request, idempotency_key=idempotency_key),
        )

    def createOffer(
        self, request: "CreateOfferRequest", *, idempotency_key: Optional[str] = None
    ) -> "CreateOfferResponse":
        "Publishes an offer to one or many stores."
        return cast(
            "CreateOfferResponse",
            self.call("createOffer", request, idempotency_key=idempotency_key),
        )

    def createSetupCode(
        self, request: "CreateSetupCodeRequest", *, idempotency_key: Optional[str] = None
    ) -> "CreateSetupCodeResponse":
        "Creates a code with which an agent of the store registers one device."
        return cast(
            "CreateSetupCodeResponse",
            self.call("createSetupCode", request, idempotency_key=idempotency_key),
        )

    def createZone(
        self, request: "CreateZoneRequest", *, idempotency_key: Optional[str] = None
    ) -> "CreateZoneResponse":
        "Creates a zone of a store with a QR code to display there."
        return cast(
            "CreateZoneResponse",
            self.call("createZone", request, idempotency_key=idempotency_key),
        )

    def decommissionDevice(
        self, request: "DecommissionDeviceRequest", *, idempotency_key: Optional[str] = None
    ) -> "DecommissionDeviceResponse":
        "Takes a device out of service. The cloud revokes its authorizations and issues no more."
        return cast(
            "DecommissionDeviceResponse",
            self.call("decommissionDevice", request, idempotency_key=idempotency_key),
        )

    def deleteOffer(
        self, request: "DeleteOfferRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "DeleteOfferResponse":
        "Deletes an offer and all its branch documents immediately."
        return cast(
            "DeleteOfferResponse",
            self.call("deleteOffer", request, idempotency_key=idempotency_key),
        )

    def deleteWebhook(
        self, request: "DeleteWebhookRequest", *, idempotency_key: Optional[str] = None
    ) -> "DeleteWebhookResponse":
        "Deletes a webhook. The cloud sends nothing more to it."
        return cast(
            "DeleteWebhookResponse",
            self.call("deleteWebhook", request, idempotency_key=idempotency_key),
        )

    def disposeAlarm(
        self, request: "DisposeAlarmRequest", *, idempotency_key: Optional[str] = None
    ) -> "DisposeAlarmResponse":
        "Stores what a person found out about a gate alarm."
        return cast(
            "DisposeAlarmResponse",
            self.call("disposeAlarm", request, idempotency_key=idempotency_key),
        )

    def disposeAlarms(
        self, request: "DisposeAlarmsRequest", *, idempotency_key: Optional[str] = None
    ) -> "DisposeAlarmsResponse":
        "Stores one disposition for many open alarms, for example after the fault of a gate."
        return cast(
            "DisposeAlarmsResponse",
            self.call("disposeAlarms", request, idempotency_key=idempotency_key),
        )

    def endRecall(
        self, request: "EndRecallRequest", *, idempotency_key: Optional[str] = None
    ) -> "EndRecallResponse":
        "Ends a recall: its goods are again what their status says, unless another recall stops them."
        return cast(
            "EndRecallResponse",
            self.call("endRecall", request, idempotency_key=idempotency_key),
        )

    def endSessions(
        self, request: "EndSessionsRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "EndSessionsResponse":
        "Ends one session of the calling user, or all of them."
        return cast(
            "EndSessionsResponse",
            self.call("endSessions", request, idempotency_key=idempotency_key),
        )

    def enrolEdgeAgent(
        self, request: "EnrolEdgeAgentRequest", *, idempotency_key: Optional[str] = None
    ) -> "EnrolEdgeAgentResponse":
        "Enrols an edge agent with a code and its own key. Needs no API key."
        return cast(
            "EnrolEdgeAgentResponse",
            self.call("enrolEdgeAgent", request, idempotency_key=idempotency_key),
        )

    def eraseCustomerData(
        self, request: "EraseCustomerDataRequest", *, idempotency_key: Optional[str] = None
    ) -> "EraseCustomerDataResponse":
        "Erases the data of one customer."
        return cast(
            "EraseCustomerDataResponse",
            self.call("eraseCustomerData", request, idempotency_key=idempotency_key),
        )

    def exportCustomerData(
        self, request: "ExportCustomerDataRequest", *, idempotency_key: Optional[str] = None
    ) -> "ExportCustomerDataResponse":
        "Exports all stored data of one customer."
        return cast(
            "ExportCustomerDataResponse",
            self.call("exportCustomerData", request, idempotency_key=idempotency_key),
        )

    def exportEpcisEvents(
        self, request: "ExportEpcisEventsRequest", *, idempotency_key: Optional[str] = None
    ) -> "ExportEpcisEventsResponse":
        "Exports the history of the goods in a store as EPCIS 2.0 events."
        return cast(
            "ExportEpcisEventsResponse",
            self.call("exportEpcisEvents", request, idempotency_key=idempotency_key),
        )

    def exportSalesData(
        self, request: "ExportSalesDataRequest", *, idempotency_key: Optional[str] = None
    ) -> "ExportSalesDataResponse":
        "Exports all paid purchases between two dates as JSON or CSV."
        return cast(
            "ExportSalesDataResponse",
            self.call("exportSalesData", request, idempotency_key=idempotency_key),
        )

    def fetchAccount(
        self, request: "FetchAccountRequest", *, idempotency_key: Optional[str] = None
    ) -> "FetchAccountResponse":
        "Returns one account of this cloud, and how much of its limits it uses. For administrators."
        return cast(
            "FetchAccountResponse",
            self.call("fetchAccount", request, idempotency_key=idempotency_key),
        )

    def fetchAccountSettings(
        self, request: "FetchAccountSettingsRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "FetchAccountSettingsResponse":
        "Returns the settings of the account."
        return cast(
            "FetchAccountSettingsResponse",
            self.call("fetchAccountSettings", request, idempotency_key=idempotency_key),
        )

    def fetchAccountStores(
        self, request: "FetchAccountStoresRequest", *, idempotency_key: Optional[str] = None
    ) -> "FetchAccountStoresResponse":
        "Lists the stores of an account of this cloud in both modes, oldest first. For administrators."
        return cast(
            "FetchAccountStoresResponse",
            self.call("fetchAccountStores", request, idempotency_key=idempotency_key),
        )

    def fetchAccounts(
        self, request: "FetchAccountsRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "FetchAccountsResponse":
        "Lists the accounts of this cloud, oldest first. For administrators."
        return cast(
            "FetchAccountsResponse",
            self.call("fetchAccounts", request, idempotency_key=idempotency_key),
        )

    def fetchActiveOffers(
        self, request: "FetchActiveOffersRequest", *, idempotency_key: Optional[str] = None
    ) -> "FetchActiveOffersResponse":
        "Lists the active offers of a store with their products, the newest first."
        return cast(
            "FetchActiveOffersResponse",
            self.call("fetchActiveOffers", request, idempotency_key=idempotency_key),
        )

    def fetchAgentConditions(
        self, request: "FetchAgentConditionsRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "FetchAgentConditionsResponse":
        "Counts the edge agents of a store or of the whole account by what is wrong with them."
        return cast(
            "FetchAgentConditionsResponse",
            self.call("fetchAgentConditions", request, idempotency_key=idempotency_key),
        )

    def fetchAgents(
        self, request: "FetchAgentsRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "FetchAgentsResponse":
        "Lists the edge agents of a store or of the whole account, with connection, document versions and unsent rows."
        return cast(
            "FetchAgentsResponse",
            self.call("fetchAgents", request, idempotency_key=idempotency_key),
        )

    def fetchAlarmNotices(
        self, request: "FetchAlarmNoticesRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "FetchAlarmNoticesResponse":
        "Returns whether this session gets push notices about alarms, and the public key to subscribe with."
        return cast(
            "FetchAlarmNoticesResponse",
            self.call("fetchAlarmNotices", request, idempotency_key=idempotency_key),
        )

    def fetchAlarms(
        self, request: "FetchAlarmsRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "FetchAlarmsResponse":
        "Lists alarms of a store or account with product, gate and fitting receipt, the latest first."
        return cast(
            "FetchAlarmsResponse",
            self.call("fetchAlarms", request, idempotency_key=idempotency_key),
        )

    def fetchAnalytics(
        self, request: "FetchAnalyticsRequest", *, idempotency_key: Optional[str] = None
    ) -> "FetchAnalyticsResponse":
        "Returns reports of a store by day, week or month."
        return cast(
            "FetchAnalyticsResponse",
            self.call("fetchAnalytics", request, idempotency_key=idempotency_key),
        )

    def fetchApiKeys(
        self, request: "FetchApiKeysRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "FetchApiKeysResponse":
        "Lists the keys of the account in the mode of the calling key, without the keys themselves."
        return cast(
            "FetchApiKeysResponse",
            self.call("fetchApiKeys", request, idempotency_key=idempotency_key),
        )

    def fetchAssistanceRequests(
        self, request: "FetchAssistanceRequestsRequest", *, idempotency_key: Optional[str] = None
    ) -> "FetchAssistanceRequestsResponse":
        "Lists requests for help in a store with their messages, the newest first."
        return cast(
            "FetchAssistanceRequestsResponse",
            self.call("fetchAssistanceRequests", request, idempotency_key=idempotency_key),
        )

    def fetchAuditLog(
        self, request: "FetchAuditLogRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "FetchAuditLogResponse":
        "Lists who changed what, oldest first."
        return cast(
            "FetchAuditLogResponse",
            self.call("fetchAuditLog", request, idempotency_key=idempotency_key),
        )

    def fetchClickCollectOrders(
        self, request: "FetchClickCollectOrdersRequest", *, idempotency_key: Optional[str] = None
    ) -> "FetchClickCollectOrdersResponse":
        "Lists the orders of a store, the newest first."
        return cast(
            "FetchClickCollectOrdersResponse",
            self.call("fetchClickCollectOrders", request, idempotency_key=idempotency_key),
        )

    def fetchClosings(
        self, request: "FetchClosingsRequest", *, idempotency_key: Optional[str] = None
    ) -> "FetchClosingsResponse":
        "Lists the closings of a store, newest first."
        return cast(
            "FetchClosingsResponse",
            self.call("fetchClosings", request, idempotency_key=idempotency_key),
        )

    def fetchDevices(
        self, request: "FetchDevicesRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "FetchDevicesResponse":
        "Lists the devices of a store or account."
        return cast(
            "FetchDevicesResponse",
            self.call("fetchDevices", request, idempotency_key=idempotency_key),
        )

    def fetchERPRecords(
        self, request: "FetchERPRecordsRequest", *, idempotency_key: Optional[str] = None
    ) -> "FetchERPRecordsResponse":
        "Lists purchase orders or suppliers that syncERP has stored."
        return cast(
            "FetchERPRecordsResponse",
            self.call("fetchERPRecords", request, idempotency_key=idempotency_key),
        )

    def fetchExceptions(
        self, request: "FetchExceptionsRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "FetchExceptionsResponse":
        "Lists exceptions that staff must look at, of a store or the whole account, newest first."
        return cast(
            "FetchExceptionsResponse",
            self.call("fetchExceptions", request, idempotency_key=idempotency_key),
        )

    def fetchIntegrations(
        self, request: "FetchIntegrationsRequest", *, idempotency_key: Optional[str] = None
    ) -> "FetchIntegrationsResponse":
        "Lists the payment provider of a store, and the systems that it reads, without their credentials."
        return cast(
            "FetchIntegrationsResponse",
            self.call("fetchIntegrations", request, idempotency_key=idempotency_key),
        )

    def fetchOffer(
        self, request: "FetchOfferRequest", *, idempotency_key: Optional[str] = None
    ) -> "FetchOfferResponse":
        "Returns an offer with its products and their prices in each store."
        return cast(
            "FetchOfferResponse",
            self.call("fetchOffer", request, idempotency_key=idempotency_key),
        )

    def fetchOfflineFigures(
        self, request: "FetchOfflineFiguresRequest", *, idempotency_key: Optional[str] = None
    ) -> "FetchOfflineFiguresResponse":
        "Returns what it cost that the agents of a store were offline."
        return cast(
            "FetchOfflineFiguresResponse",
            self.call("fetchOfflineFigures", request, idempotency_key=idempotency_key),
        )

    def fetchOpenTasks(
        self, request: "FetchOpenTasksRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "FetchOpenTasksResponse":
        "Counts what waits for a person in a store, or in all stores of the caller."
        return cast(
            "FetchOpenTasksResponse",
            self.call("fetchOpenTasks", request, idempotency_key=idempotency_key),
        )

    def fetchOperators(
        self, request: "FetchOperatorsRequest", *, idempotency_key: Optional[str] = None
    ) -> "FetchOperatorsResponse":
        "Lists the operators of a store."
        return cast(
            "FetchOperatorsResponse",
            self.call("fetchOperators", request, idempotency_key=idempotency_key),
        )

    def fetchPasskeys(
        self, request: "FetchPasskeysRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "FetchPasskeysResponse":
        "Lists the passkeys of the calling user, oldest first."
        return cast(
            "FetchPasskeysResponse",
            self.call("fetchPasskeys", request, idempotency_key=idempotency_key),
        )

    def fetchProduct(
        self, request: "FetchProductRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "FetchProductResponse":
        "Returns one product by id or barcode."
        return cast(
            "FetchProductResponse",
            self.call("fetchProduct", request, idempotency_key=idempotency_key),
        )

    def fetchProducts(
        self, request: "FetchProductsRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "FetchProductsResponse":
        "Lists the products of a store."
        return cast(
            "FetchProductsResponse",
            self.call("fetchProducts", request, idempotency_key=idempotency_key),
        )

    def fetchProfile(
        self, request: "FetchProfileRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "FetchProfileResponse":
        "Returns the calling user and the rights of this session."
        return cast(
            "FetchProfileResponse",
            self.call("fetchProfile", request, idempotency_key=idempotency_key),
        )

    def fetchProtectedItem(
        self, request: "FetchProtectedItemRequest", *, idempotency_key: Optional[str] = None
    ) -> "FetchProtectedItemResponse":
        "Returns one tagged item with its status and its status history."
        return cast(
            "FetchProtectedItemResponse",
            self.call("fetchProtectedItem", request, idempotency_key=idempotency_key),
        )

    def fetchProtectionEvents(
        self, request: "FetchProtectionEventsRequest", *, idempotency_key: Optional[str] = None
    ) -> "FetchProtectionEventsResponse":
        "Lists the protection events of a store in the order in which they became durable."
        return cast(
            "FetchProtectionEventsResponse",
            self.call("fetchProtectionEvents", request, idempotency_key=idempotency_key),
        )

    def fetchProtectionPolicy(
        self, request: "FetchProtectionPolicyRequest", *, idempotency_key: Optional[str] = None
    ) -> "FetchProtectionPolicyResponse":
        "Returns the protection policy of a store and the maximum loss while it is offline."
        return cast(
            "FetchProtectionPolicyResponse",
            self.call("fetchProtectionPolicy", request, idempotency_key=idempotency_key),
        )

    def fetchPurchase(
        self, request: "FetchPurchaseRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "FetchPurchaseResponse":
        "Returns one purchase with its receipt data."
        return cast(
            "FetchPurchaseResponse",
            self.call("fetchPurchase", request, idempotency_key=idempotency_key),
        )

    def fetchPurchaseHistory(
        self, request: "FetchPurchaseHistoryRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "FetchPurchaseHistoryResponse":
        "Lists purchases, the newest first."
        return cast(
            "FetchPurchaseHistoryResponse",
            self.call("fetchPurchaseHistory", request, idempotency_key=idempotency_key),
        )

    def fetchPushKey(
        self, request: "FetchPushKeyRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "FetchPushKeyResponse":
        "Returns the public key with which a browser subscribes to push notifications."
        return cast(
            "FetchPushKeyResponse",
            self.call("fetchPushKey", request, idempotency_key=idempotency_key),
        )

    def fetchPushSubscriptions(
        self, request: "FetchPushSubscriptionsRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "FetchPushSubscriptionsResponse":
        "Lists the push subscriptions of browsers and of endpoints of your own, oldest first."
        return cast(
            "FetchPushSubscriptionsResponse",
            self.call("fetchPushSubscriptions", request, idempotency_key=idempotency_key),
        )

    def fetchRecalls(
        self, request: "FetchRecallsRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "FetchRecallsResponse":
        "Lists recalls, of a store or of all stores that the key may see, newest first."
        return cast(
            "FetchRecallsResponse",
            self.call("fetchRecalls", request, idempotency_key=idempotency_key),
        )

    def fetchRegistrations(
        self, request: "FetchRegistrationsRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "FetchRegistrationsResponse":
        "Lists registrations, oldest first: for administrators of the cloud all of them, otherwise those of the account."
        return cast(
            "FetchRegistrationsResponse",
            self.call("fetchRegistrations", request, idempotency_key=idempotency_key),
        )

    def fetchSessions(
        self, request: "FetchSessionsRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "FetchSessionsResponse":
        "Lists the sessions of the calling user, oldest first."
        return cast(
            "FetchSessionsResponse",
            self.call("fetchSessions", request, idempotency_key=idempotency_key),
        )

    def fetchSignedDocuments(
        self, request: "FetchSignedDocumentsRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "FetchSignedDocumentsResponse":
        "Returns the signed documents that an agent does not have yet, and always the freshness document."
        return cast(
            "FetchSignedDocumentsResponse",
            self.call("fetchSignedDocuments", request, idempotency_key=idempotency_key),
        )

    def fetchStock(
        self, request: "FetchStockRequest", *, idempotency_key: Optional[str] = None
    ) -> "FetchStockResponse":
        "Lists the counted products of a store: pieces, reserved pieces and available pieces."
        return cast(
            "FetchStockResponse",
            self.call("fetchStock", request, idempotency_key=idempotency_key),
        )

    def fetchStore(
        self, request: "FetchStoreRequest", *, idempotency_key: Optional[str] = None
    ) -> "FetchStoreResponse":
        "Returns one store."
        return cast(
            "FetchStoreResponse",
            self.call("fetchStore", request, idempotency_key=idempotency_key),
        )

    def fetchStoreNames(
        self, request: "FetchStoreNamesRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "FetchStoreNamesResponse":
        "Lists names and addresses of the stores of the account, for a choice."
        return cast(
            "FetchStoreNamesResponse",
            self.call("fetchStoreNames", request, idempotency_key=idempotency_key),
        )

    def fetchStores(
        self, request: "FetchStoresRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "FetchStoresResponse":
        "Lists the stores of the account, in a city or within a radius."
        return cast(
            "FetchStoresResponse",
            self.call("fetchStores", request, idempotency_key=idempotency_key),
        )

    def fetchUsers(
        self, request: "FetchUsersRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "FetchUsersResponse":
        "Lists the users of the account, oldest first."
        return cast(
            "FetchUsersResponse",
            self.call("fetchUsers", request, idempotency_key=idempotency_key),
        )

    def fetchWebhookDeliveries(
        self, request: "FetchWebhookDeliveriesRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "FetchWebhookDeliveriesResponse":
        "Lists deliveries of the last 30 days with their attempts, newest first."
        return cast(
            "FetchWebhookDeliveriesResponse",
            self.call("fetchWebhookDeliveries", request, idempotency_key=idempotency_key),
        )

    def fetchWebhookEvents(
        self, request: "FetchWebhookEventsRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "FetchWebhookEventsResponse":
        "Lists the events of the last 30 days in order, even if no webhook was registered."
        return cast(
            "FetchWebhookEventsResponse",
            self.call("fetchWebhookEvents", request, idempotency_key=idempotency_key),
        )

    def fetchWebhooks(
        self, request: "FetchWebhooksRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "FetchWebhooksResponse":
        "Lists the webhooks, all or those of one store."
        return cast(
            "FetchWebhooksResponse",
            self.call("fetchWebhooks", request, idempotency_key=idempotency_key),
        )

    def fetchZones(
        self, request: "FetchZonesRequest", *, idempotency_key: Optional[str] = None
    ) -> "FetchZonesResponse":
        "Lists the zones of a store."
        return cast(
            "FetchZonesResponse",
            self.call("fetchZones", request, idempotency_key=idempotency_key),
        )

    def finishOpenIdSignIn(
        self, request: "FinishOpenIdSignInRequest", *, idempotency_key: Optional[str] = None
    ) -> "FinishOpenIdSignInResponse":
        "Signs a user in with the answer of the OpenID Connect provider."
        return cast(
            "FinishOpenIdSignInResponse",
            self.call("finishOpenIdSignIn", request, idempotency_key=idempotency_key),
        )

    def generateCodes(
        self, request: "GenerateCodesRequest", *, idempotency_key: Optional[str] = None
    ) -> "GenerateCodesResponse":
        "Draws QR codes to display in a store."
        return cast(
            "GenerateCodesResponse",
            self.call("generateCodes", request, idempotency_key=idempotency_key),
        )

    def generateReceiptQR(
        self, request: "GenerateReceiptQRRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "GenerateReceiptQRResponse":
        "Returns the QR code of a receipt."
        return cast(
            "GenerateReceiptQRResponse",
            self.call("generateReceiptQR", request, idempotency_key=idempotency_key),
        )

    def generateReceiptWithQR(
        self, request: "GenerateReceiptWithQRRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "GenerateReceiptWithQRResponse":
        "Another name of generateReceiptQR."
        return cast(
            "GenerateReceiptWithQRResponse",
            self.call("generateReceiptWithQR", request, idempotency_key=idempotency_key),
        )

    def getLoyaltyAnalytics(
        self, request: "GetLoyaltyAnalyticsRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "GetLoyaltyAnalyticsResponse":
        "Returns members, points and redemptions: in total, by month and by program."
        return cast(
            "GetLoyaltyAnalyticsResponse",
            self.call("getLoyaltyAnalytics", request, idempotency_key=idempotency_key),
        )

    def getLoyaltyProgram(
        self, request: "GetLoyaltyProgramRequest", *, idempotency_key: Optional[str] = None
    ) -> "GetLoyaltyProgramResponse":
        "Returns one loyalty program with its QR code to print."
        return cast(
            "GetLoyaltyProgramResponse",
            self.call("getLoyaltyProgram", request, idempotency_key=idempotency_key),
        )

    def getLoyaltyPrograms(
        self, request: "GetLoyaltyProgramsRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "GetLoyaltyProgramsResponse":
        "Lists the loyalty programs of all own stores."
        return cast(
            "GetLoyaltyProgramsResponse",
            self.call("getLoyaltyPrograms", request, idempotency_key=idempotency_key),
        )

    def getLoyaltyWebhookEvents(
        self, request: "GetLoyaltyWebhookEventsRequest", *, idempotency_key: Optional[str] = None
    ) -> "GetLoyaltyWebhookEventsResponse":
        "Registers a webhook for events of a store; with GET, lists webhooks."
        return cast(
            "GetLoyaltyWebhookEventsResponse",
            self.call("getLoyaltyWebhookEvents", request, idempotency_key=idempotency_key),
        )

    def getManagerOffers(
        self, request: "GetManagerOffersRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "GetManagerOffersResponse":
        "Lists the offers of the account, the newest first, one entry for all branches of an offer."
        return cast(
            "GetManagerOffersResponse",
            self.call("getManagerOffers", request, idempotency_key=idempotency_key),
        )

    def getReceiptFromCode(
        self, request: "GetReceiptFromCodeRequest", *, idempotency_key: Optional[str] = None
    ) -> "GetReceiptFromCodeResponse":
        "Finds the receipt of a sale by a code that its till printed."
        return cast(
            "GetReceiptFromCodeResponse",
            self.call("getReceiptFromCode", request, idempotency_key=idempotency_key),
        )

    def getReceiptFromToken(
        self, request: "GetReceiptFromTokenRequest", *, idempotency_key: Optional[str] = None
    ) -> "GetReceiptFromTokenResponse":
        "Returns a receipt by its token. No authentication."
        return cast(
            "GetReceiptFromTokenResponse",
            self.call("getReceiptFromToken", request, idempotency_key=idempotency_key),
        )

    def getStoreLoyaltyPrograms(
        self, request: "GetStoreLoyaltyProgramsRequest", *, idempotency_key: Optional[str] = None
    ) -> "GetStoreLoyaltyProgramsResponse":
        "Lists the loyalty programs of one store."
        return cast(
            "GetStoreLoyaltyProgramsResponse",
            self.call("getStoreLoyaltyPrograms", request, idempotency_key=idempotency_key),
        )

    def importProducts(
        self, request: "ImportProductsForm", *, idempotency_key: Optional[str] = None
    ) -> "ImportProductsResponse":
        "Imports products from a spreadsheet: .xlsx or .csv, up to 10,000 rows."
        return cast(
            "ImportProductsResponse",
            self.call("importProducts", request, idempotency_key=idempotency_key),
        )

    def insertProduct(
        self, request: "InsertProductRequest", *, idempotency_key: Optional[str] = None
    ) -> "InsertProductResponse":
        "Adds one product to a store."
        return cast(
            "InsertProductResponse",
            self.call("insertProduct", request, idempotency_key=idempotency_key),
        )

    def insertStore(
        self, request: "InsertStoreRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> Union["InsertStoreResponse1", "InsertStoreResponse2"]:
        "Adds a store: a demo store at once with a test key, a registration for review with a live key."
        return cast(
            Union["InsertStoreResponse1", "InsertStoreResponse2"],
            self.call("insertStore", request, idempotency_key=idempotency_key),
        )

    def inviteUser(
        self, request: "InviteUserRequest", *, idempotency_key: Optional[str] = None
    ) -> "InviteUserResponse":
        "Invites a person to the console. Only this response contains the link."
        return cast(
            "InviteUserResponse",
            self.call("inviteUser", request, idempotency_key=idempotency_key),
        )

    def issueLoyaltyCard(
        self, request: "IssueLoyaltyCardRequest", *, idempotency_key: Optional[str] = None
    ) -> "IssueLoyaltyCardResponse":
        "Returns the loyalty card of a customer: a page with balance, rewards and QR code."
        return cast(
            "IssueLoyaltyCardResponse",
            self.call("issueLoyaltyCard", request, idempotency_key=idempotency_key),
        )

    def loyaltyCheckIn(
        self, request: "LoyaltyCheckInRequest", *, idempotency_key: Optional[str] = None
    ) -> "LoyaltyCheckInResponse":
        "Checks a customer in by the QR code at the counter or by the position."
        return cast(
            "LoyaltyCheckInResponse",
            self.call("loyaltyCheckIn", request, idempotency_key=idempotency_key),
        )

    def markPurchaseCancelled(
        self, request: "MarkPurchaseCancelledRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "MarkPurchaseCancelledResponse":
        "Cancels a purchase and refunds it if it was paid."
        return cast(
            "MarkPurchaseCancelledResponse",
            self.call("markPurchaseCancelled", request, idempotency_key=idempotency_key),
        )

    def moveReceiptHome(
        self, request: "MoveReceiptHomeRequest", *, idempotency_key: Optional[str] = None
    ) -> "MoveReceiptHomeResponse":
        "Moves a store’s receipt home, which redeems its receipts, to another agent or to the cloud."
        return cast(
            "MoveReceiptHomeResponse",
            self.call("moveReceiptHome", request, idempotency_key=idempotency_key),
        )

    def processPayment(
        self, request: "ProcessPaymentRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "ProcessPaymentResponse":
        "Opens the payment of a purchase, or returns the open one."
        return cast(
            "ProcessPaymentResponse",
            self.call("processPayment", request, idempotency_key=idempotency_key),
        )

    def pushToERP(
        self, request: "PushToERPRequest", *, idempotency_key: Optional[str] = None
    ) -> "PushToERPResponse":
        "Writes records, such as transactions, to an ERP system."
        return cast(
            "PushToERPResponse",
            self.call("pushToERP", request, idempotency_key=idempotency_key),
        )

    def pushToPOS(
        self, request: "PushToPOSRequest", *, idempotency_key: Optional[str] = None
    ) -> "PushToPOSResponse":
        "Writes records, such as transactions, to a till system."
        return cast(
            "PushToPOSResponse",
            self.call("pushToPOS", request, idempotency_key=idempotency_key),
        )

    def recallProducts(
        self, request: "RecallProductsRequest", *, idempotency_key: Optional[str] = None
    ) -> "RecallProductsResponse":
        "Recalls goods: from now on they are neither sold nor released, and gates alarm for them."
        return cast(
            "RecallProductsResponse",
            self.call("recallProducts", request, idempotency_key=idempotency_key),
        )

    def recordEngagement(
        self, request: "RecordEngagementRequest", *, idempotency_key: Optional[str] = None
    ) -> "RecordEngagementResponse":
        "Counts an engagement of a shopper with a store or an offer."
        return cast(
            "RecordEngagementResponse",
            self.call("recordEngagement", request, idempotency_key=idempotency_key),
        )

    def recordReturns(
        self, request: "RecordReturnsRequest", *, idempotency_key: Optional[str] = None
    ) -> "RecordReturnsResponse":
        "Records goods that came back to your own tills: their tags alarm again."
        return cast(
            "RecordReturnsResponse",
            self.call("recordReturns", request, idempotency_key=idempotency_key),
        )

    def recordSales(
        self, request: "RecordSalesRequest", *, idempotency_key: Optional[str] = None
    ) -> "RecordSalesResponse":
        "Records sales of your own tills, so that their goods leave without an alarm."
        return cast(
            "RecordSalesResponse",
            self.call("recordSales", request, idempotency_key=idempotency_key),
        )

    def redeemLoyaltyPoints(
        self, request: "RedeemLoyaltyPointsRequest", *, idempotency_key: Optional[str] = None
    ) -> "RedeemLoyaltyPointsResponse":
        "Redeems points, stamps or cashback of a customer, for a reward or as an amount."
        return cast(
            "RedeemLoyaltyPointsResponse",
            self.call("redeemLoyaltyPoints", request, idempotency_key=idempotency_key),
        )

    def redeemProtectionAuthorization(
        self, request: "RedeemProtectionAuthorizationRequest", *, idempotency_key: Optional[str] = None
    ) -> "RedeemProtectionAuthorizationResponse":
        "Redeems one step of an authorization. Call it before the device acts, and again with the outcome."
        return cast(
            "RedeemProtectionAuthorizationResponse",
            self.call("redeemProtectionAuthorization", request, idempotency_key=idempotency_key),
        )

    def redeliverWebhook(
        self, request: "RedeliverWebhookRequest", *, idempotency_key: Optional[str] = None
    ) -> "RedeliverWebhookResponse":
        "Sends an event to its webhook again, with the same id."
        return cast(
            "RedeliverWebhookResponse",
            self.call("redeliverWebhook", request, idempotency_key=idempotency_key),
        )

    def refundPayment(
        self, request: "RefundPaymentRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "RefundPaymentResponse":
        "Refunds a payment, in whole or in part."
        return cast(
            "RefundPaymentResponse",
            self.call("refundPayment", request, idempotency_key=idempotency_key),
        )

    def registerAlarmNotices(
        self, request: "RegisterAlarmNoticesRequest", *, idempotency_key: Optional[str] = None
    ) -> "RegisterAlarmNoticesResponse":
        "Sends push notices about alarms to the browser of this session."
        return cast(
            "RegisterAlarmNoticesResponse",
            self.call("registerAlarmNotices", request, idempotency_key=idempotency_key),
        )

    def registerDevice(
        self, request: "RegisterDeviceRequest", *, idempotency_key: Optional[str] = None
    ) -> "RegisterDeviceResponse":
        "Registers a device in a store and returns its deviceId."
        return cast(
            "RegisterDeviceResponse",
            self.call("registerDevice", request, idempotency_key=idempotency_key),
        )

    def registerDeviceWithCode(
        self, request: "RegisterDeviceWithCodeRequest", *, idempotency_key: Optional[str] = None
    ) -> "RegisterDeviceWithCodeResponse":
        "Registers a device for the calling agent, with a code of createSetupCode."
        return cast(
            "RegisterDeviceWithCodeResponse",
            self.call("registerDeviceWithCode", request, idempotency_key=idempotency_key),
        )

    def registerOperator(
        self, request: "RegisterOperatorRequest", *, idempotency_key: Optional[str] = None
    ) -> "RegisterOperatorResponse":
        "Registers an operator who may approve at the stations of a store. Only this response contains the badge to print."
        return cast(
            "RegisterOperatorResponse",
            self.call("registerOperator", request, idempotency_key=idempotency_key),
        )

    def registerPasskey(
        self, request: "RegisterPasskeyRequest", *, idempotency_key: Optional[str] = None
    ) -> "RegisterPasskeyResponse":
        "Stores a new passkey of the calling user. Ends all other sessions."
        return cast(
            "RegisterPasskeyResponse",
            self.call("registerPasskey", request, idempotency_key=idempotency_key),
        )

    def registerProductToStore(
        self, request: "RegisterProductToStoreRequest", *, idempotency_key: Optional[str] = None
    ) -> "RegisterProductToStoreResponse":
        "Adds a product of the account to another store, or sets the price at which a store sells it."
        return cast(
            "RegisterProductToStoreResponse",
            self.call("registerProductToStore", request, idempotency_key=idempotency_key),
        )

    def registerProtectedItems(
        self, request: "RegisterProtectedItemsRequest", *, idempotency_key: Optional[str] = None
    ) -> "RegisterProtectedItemsResponse":
        "Registers tagged items, or updates items with a known identifier."
        return cast(
            "RegisterProtectedItemsResponse",
            self.call("registerProtectedItems", request, idempotency_key=idempotency_key),
        )

    def registerPushSubscription(
        self, request: "RegisterPushSubscriptionRequest", *, idempotency_key: Optional[str] = None
    ) -> "RegisterPushSubscriptionResponse":
        "Sends push notifications about orders to a browser, or to an HTTPS endpoint of your own."
        return cast(
            "RegisterPushSubscriptionResponse",
            self.call("registerPushSubscription", request, idempotency_key=idempotency_key),
        )

    def registerWebhook(
        self, request: "RegisterWebhookRequest", *, idempotency_key: Optional[str] = None
    ) -> "RegisterWebhookResponse":
        "Registers a URL that receives events."
        return cast(
            "RegisterWebhookResponse",
            self.call("registerWebhook", request, idempotency_key=idempotency_key),
        )

    def rejectStoreRegistration(
        self, request: "RejectStoreRegistrationRequest", *, idempotency_key: Optional[str] = None
    ) -> "RejectStoreRegistrationResponse":
        "Rejects a registration with a reason for the merchant. For administrators."
        return cast(
            "RejectStoreRegistrationResponse",
            self.call("rejectStoreRegistration", request, idempotency_key=idempotency_key),
        )

    def removeAlarmNotices(
        self, request: "RemoveAlarmNoticesRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "RemoveAlarmNoticesResponse":
        "Ends the push notices of this session. Does nothing if there are none."
        return cast(
            "RemoveAlarmNoticesResponse",
            self.call("removeAlarmNotices", request, idempotency_key=idempotency_key),
        )

    def removeOperator(
        self, request: "RemoveOperatorRequest", *, idempotency_key: Optional[str] = None
    ) -> "RemoveOperatorResponse":
        "Removes an operator, who can no longer approve, and revokes the unused authorizations that they approved."
        return cast(
            "RemoveOperatorResponse",
            self.call("removeOperator", request, idempotency_key=idempotency_key),
        )

    def removePasskey(
        self, request: "RemovePasskeyRequest", *, idempotency_key: Optional[str] = None
    ) -> "RemovePasskeyResponse":
        "Removes a passkey of the calling user. Ends all other sessions."
        return cast(
            "RemovePasskeyResponse",
            self.call("removePasskey", request, idempotency_key=idempotency_key),
        )

    def removeProductFromStore(
        self, request: "RemoveProductFromStoreRequest", *, idempotency_key: Optional[str] = None
    ) -> "RemoveProductFromStoreResponse":
        "Removes a product from a store."
        return cast(
            "RemoveProductFromStoreResponse",
            self.call("removeProductFromStore", request, idempotency_key=idempotency_key),
        )

    def removePushSubscription(
        self, request: "RemovePushSubscriptionRequest", *, idempotency_key: Optional[str] = None
    ) -> "RemovePushSubscriptionResponse":
        "Ends a push subscription and discards its queued notices."
        return cast(
            "RemovePushSubscriptionResponse",
            self.call("removePushSubscription", request, idempotency_key=idempotency_key),
        )

    def removeSecondFactor(
        self, request: "RemoveSecondFactorRequest", *, idempotency_key: Optional[str] = None
    ) -> "RemoveSecondFactorResponse":
        "Removes the second factor of the calling user. Ends all sessions."
        return cast(
            "RemoveSecondFactorResponse",
            self.call("removeSecondFactor", request, idempotency_key=idempotency_key),
        )

    def removeUser(
        self, request: "RemoveUserRequest", *, idempotency_key: Optional[str] = None
    ) -> "RemoveUserResponse":
        "Removes a user, or withdraws an open invitation. Ends all sessions of the user at once."
        return cast(
            "RemoveUserResponse",
            self.call("removeUser", request, idempotency_key=idempotency_key),
        )

    def reportDeviceHeartbeat(
        self, request: "ReportDeviceHeartbeatRequest", *, idempotency_key: Optional[str] = None
    ) -> "ReportDeviceHeartbeatResponse":
        "Reports that a device is alive. If an agent calls it, it also adopts the device."
        return cast(
            "ReportDeviceHeartbeatResponse",
            self.call("reportDeviceHeartbeat", request, idempotency_key=idempotency_key),
        )

    def reportProtectionEvents(
        self, request: "ReportProtectionEventsRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "ReportProtectionEventsResponse":
        "Stores protection events of a merchant’s own devices, or a signed batch of an agent’s journal."
        return cast(
            "ReportProtectionEventsResponse",
            self.call("reportProtectionEvents", request, idempotency_key=idempotency_key),
        )

    def requestAssistance(
        self, request: "RequestAssistanceRequest", *, idempotency_key: Optional[str] = None
    ) -> "RequestAssistanceResponse":
        "Requests help in a zone."
        return cast(
            "RequestAssistanceResponse",
            self.call("requestAssistance", request, idempotency_key=idempotency_key),
        )

    def resolveAgentFork(
        self, request: "ResolveAgentForkRequest", *, idempotency_key: Optional[str] = None
    ) -> "ResolveAgentForkResponse":
        "Resolves a forked agent, whose ledger exists twice: the remaining copy continues, or both are revoked."
        return cast(
            "ResolveAgentForkResponse",
            self.call("resolveAgentFork", request, idempotency_key=idempotency_key),
        )

    def resolveRedemption(
        self, request: "ResolveRedemptionRequest", *, idempotency_key: Optional[str] = None
    ) -> "ResolveRedemptionResponse":
        "Resolves an unknown or failed outcome with what staff saw."
        return cast(
            "ResolveRedemptionResponse",
            self.call("resolveRedemption", request, idempotency_key=idempotency_key),
        )

    def reuseTags(
        self, request: "ReuseTagsRequest", *, idempotency_key: Optional[str] = None
    ) -> "ReuseTagsResponse":
        "Puts released hard tags on other goods."
        return cast(
            "ReuseTagsResponse",
            self.call("reuseTags", request, idempotency_key=idempotency_key),
        )

    def revokeAgent(
        self, request: "RevokeAgentRequest", *, idempotency_key: Optional[str] = None
    ) -> "RevokeAgentResponse":
        "Revokes an edge agent for good, for example a stolen or replaced machine."
        return cast(
            "RevokeAgentResponse",
            self.call("revokeAgent", request, idempotency_key=idempotency_key),
        )

    def revokeApiKey(
        self, request: "RevokeApiKeyRequest", *, idempotency_key: Optional[str] = None
    ) -> "RevokeApiKeyResponse":
        "Revokes a key at once."
        return cast(
            "RevokeApiKeyResponse",
            self.call("revokeApiKey", request, idempotency_key=idempotency_key),
        )

    def revokeProtectionAuthorization(
        self, request: "RevokeProtectionAuthorizationRequest", *, idempotency_key: Optional[str] = None
    ) -> "RevokeProtectionAuthorizationResponse":
        "Revokes an authorization. Redeemed steps stay redeemed."
        return cast(
            "RevokeProtectionAuthorizationResponse",
            self.call("revokeProtectionAuthorization", request, idempotency_key=idempotency_key),
        )

    def revokeTill(
        self, request: "RevokeTillRequest", *, idempotency_key: Optional[str] = None
    ) -> "RevokeTillResponse":
        "Stops a till that cannot be trusted: its sales release nothing any more."
        return cast(
            "RevokeTillResponse",
            self.call("revokeTill", request, idempotency_key=idempotency_key),
        )

    def rollApiKey(
        self, request: "RollApiKeyRequest", *, idempotency_key: Optional[str] = None
    ) -> "RollApiKeyResponse":
        "Replaces a key by a new one. Both work until the overlap ends."
        return cast(
            "RollApiKeyResponse",
            self.call("rollApiKey", request, idempotency_key=idempotency_key),
        )

    def rollWebhookSecret(
        self, request: "RollWebhookSecretRequest", *, idempotency_key: Optional[str] = None
    ) -> "RollWebhookSecretResponse":
        "Replaces the secret of a webhook. The previous one also signs until the overlap ends."
        return cast(
            "RollWebhookSecretResponse",
            self.call("rollWebhookSecret", request, idempotency_key=idempotency_key),
        )

    def rotateAgentKey(
        self, request: "RotateAgentKeyRequest", *, idempotency_key: Optional[str] = None
    ) -> "RotateAgentKeyResponse":
        "Rotates an agent’s own key. The old key stays valid until the agent uses the new one."
        return cast(
            "RotateAgentKeyResponse",
            self.call("rotateAgentKey", request, idempotency_key=idempotency_key),
        )

    def rotateSigningKey(
        self, request: "RotateSigningKeyRequest", *, idempotency_key: Optional[str] = None
    ) -> "RotateSigningKeyResponse":
        "Rotates a signing key of the cloud, or revokes one at once. For administrators."
        return cast(
            "RotateSigningKeyResponse",
            self.call("rotateSigningKey", request, idempotency_key=idempotency_key),
        )

    def searchProducts(
        self, request: "SearchProductsRequest", *, idempotency_key: Optional[str] = None
    ) -> "SearchProductsResponse":
        "Finds products of a store by the beginnings of words."
        return cast(
            "SearchProductsResponse",
            self.call("searchProducts", request, idempotency_key=idempotency_key),
        )

    def sendTestWebhook(
        self, request: "SendTestWebhookRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "SendTestWebhookResponse":
        "Sends a test event to one webhook, or to all that are subscribed to it."
        return cast(
            "SendTestWebhookResponse",
            self.call("sendTestWebhook", request, idempotency_key=idempotency_key),
        )

    def setStock(
        self, request: "SetStockRequest", *, idempotency_key: Optional[str] = None
    ) -> "SetStockResponse":
        "Sets how many pieces of a product a store has."
        return cast(
            "SetStockResponse",
            self.call("setStock", request, idempotency_key=idempotency_key),
        )

    def setStorePackage(
        self, request: "SetStorePackageRequest", *, idempotency_key: Optional[str] = None
    ) -> "SetStorePackageResponse":
        "Sets the package of any store immediately. Administrators only."
        return cast(
            "SetStorePackageResponse",
            self.call("setStorePackage", request, idempotency_key=idempotency_key),
        )

    def signIn(
        self, request: "SignInRequest", *, idempotency_key: Optional[str] = None
    ) -> "SignInResponse":
        "Signs a user in with e-mail address and password."
        return cast(
            "SignInResponse",
            self.call("signIn", request, idempotency_key=idempotency_key),
        )

    def signInWithPasskey(
        self, request: "SignInWithPasskeyRequest", *, idempotency_key: Optional[str] = None
    ) -> "SignInWithPasskeyResponse":
        "Signs a user in with a passkey, which also counts as the second factor."
        return cast(
            "SignInWithPasskeyResponse",
            self.call("signInWithPasskey", request, idempotency_key=idempotency_key),
        )

    def signOut(
        self, request: "SignOutRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "SignOutResponse":
        "Ends the session of this call."
        return cast(
            "SignOutResponse",
            self.call("signOut", request, idempotency_key=idempotency_key),
        )

    def simulateProtectionPolicy(
        self, request: "SimulateProtectionPolicyRequest", *, idempotency_key: Optional[str] = None
    ) -> "SimulateProtectionPolicyResponse":
        "Applies another protection policy to recent requests and returns the decisions that would change."
        return cast(
            "SimulateProtectionPolicyResponse",
            self.call("simulateProtectionPolicy", request, idempotency_key=idempotency_key),
        )

    def simulateStorePackage(
        self, request: "SimulateStorePackageRequest", *, idempotency_key: Optional[str] = None
    ) -> "SimulateStorePackageResponse":
        "Says what another package would change in a store, and changes nothing. Administrators only."
        return cast(
            "SimulateStorePackageResponse",
            self.call("simulateStorePackage", request, idempotency_key=idempotency_key),
        )

    def startCheckout(
        self, request: "StartCheckoutRequest", *, idempotency_key: Optional[str] = None
    ) -> "StartCheckoutResponse":
        "Creates a purchase from a basket and opens its payment."
        return cast(
            "StartCheckoutResponse",
            self.call("startCheckout", request, idempotency_key=idempotency_key),
        )

    def submitClickCollectOrder(
        self, request: "SubmitClickCollectOrderRequest", *, idempotency_key: Optional[str] = None
    ) -> "SubmitClickCollectOrderResponse":
        "Orders products for pick-up in a store."
        return cast(
            "SubmitClickCollectOrderResponse",
            self.call("submitClickCollectOrder", request, idempotency_key=idempotency_key),
        )

    def submitStoreRegistration(
        self, request: "SubmitStoreRegistrationRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "SubmitStoreRegistrationResponse":
        "Submits a live store of the account for review."
        return cast(
            "SubmitStoreRegistrationResponse",
            self.call("submitStoreRegistration", request, idempotency_key=idempotency_key),
        )

    def submitStoreRegistrationRequest(
        self, request: "SubmitStoreRegistrationRequestRequest", *, idempotency_key: Optional[str] = None
    ) -> "SubmitStoreRegistrationRequestResponse":
        "Requests an account, without a key."
        return cast(
            "SubmitStoreRegistrationRequestResponse",
            self.call("submitStoreRegistrationRequest", request, idempotency_key=idempotency_key),
        )

    def switchMode(
        self, request: "SwitchModeRequest", *, idempotency_key: Optional[str] = None
    ) -> "SwitchModeResponse":
        "Chooses sandbox or live data for this session and for later ones."
        return cast(
            "SwitchModeResponse",
            self.call("switchMode", request, idempotency_key=idempotency_key),
        )

    def syncERP(
        self, request: "SyncERPRequest", *, idempotency_key: Optional[str] = None
    ) -> "SyncERPResponse":
        "Reads stock, purchase orders and suppliers of an ERP system into a store."
        return cast(
            "SyncERPResponse",
            self.call("syncERP", request, idempotency_key=idempotency_key),
        )

    def syncPOS(
        self, request: "SyncPOSRequest", *, idempotency_key: Optional[str] = None
    ) -> "SyncPOSResponse":
        "Reads the products of a till system into a store."
        return cast(
            "SyncPOSResponse",
            self.call("syncPOS", request, idempotency_key=idempotency_key),
        )

    def updateAccountSettings(
        self, request: "UpdateAccountSettingsRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "UpdateAccountSettingsResponse":
        "Changes settings of the account."
        return cast(
            "UpdateAccountSettingsResponse",
            self.call("updateAccountSettings", request, idempotency_key=idempotency_key),
        )

    def updateClickCollectStatus(
        self, request: "UpdateClickCollectStatusRequest", *, idempotency_key: Optional[str] = None
    ) -> "UpdateClickCollectStatusResponse":
        "Moves an order to its next status."
        return cast(
            "UpdateClickCollectStatusResponse",
            self.call("updateClickCollectStatus", request, idempotency_key=idempotency_key),
        )

    def updateDevice(
        self, request: "UpdateDeviceRequest", *, idempotency_key: Optional[str] = None
    ) -> "UpdateDeviceResponse":
        "Changes a device."
        return cast(
            "UpdateDeviceResponse",
            self.call("updateDevice", request, idempotency_key=idempotency_key),
        )

    def updateItemStatus(
        self, request: "UpdateItemStatusRequest", *, idempotency_key: Optional[str] = None
    ) -> "UpdateItemStatusResponse":
        "Moves a tagged item to another status."
        return cast(
            "UpdateItemStatusResponse",
            self.call("updateItemStatus", request, idempotency_key=idempotency_key),
        )

    def updateLoyaltyProgram(
        self, request: "UpdateLoyaltyProgramRequest", *, idempotency_key: Optional[str] = None
    ) -> "UpdateLoyaltyProgramResponse":
        "Changes a loyalty program."
        return cast(
            "UpdateLoyaltyProgramResponse",
            self.call("updateLoyaltyProgram", request, idempotency_key=idempotency_key),
        )

    def updateOffer(
        self, request: "UpdateOfferRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "UpdateOfferResponse":
        "Changes an offer in all its branches. Omitted fields keep their values."
        return cast(
            "UpdateOfferResponse",
            self.call("updateOffer", request, idempotency_key=idempotency_key),
        )

    def updateOperator(
        self, request: "UpdateOperatorRequest", *, idempotency_key: Optional[str] = None
    ) -> "UpdateOperatorResponse":
        "Replaces the PIN or the badge of an operator. The replaced one stops working."
        return cast(
            "UpdateOperatorResponse",
            self.call("updateOperator", request, idempotency_key=idempotency_key),
        )

    def updateProduct(
        self, request: "UpdateProductRequest", *, idempotency_key: Optional[str] = None
    ) -> "UpdateProductResponse":
        "Changes a product."
        return cast(
            "UpdateProductResponse",
            self.call("updateProduct", request, idempotency_key=idempotency_key),
        )

    def updateProfile(
        self, request: "UpdateProfileRequest", *, idempotency_key: Optional[str] = None
    ) -> "UpdateProfileResponse":
        "Changes the name of the calling user."
        return cast(
            "UpdateProfileResponse",
            self.call("updateProfile", request, idempotency_key=idempotency_key),
        )

    def updateProtectionPolicy(
        self, request: "UpdateProtectionPolicyRequest", *, idempotency_key: Optional[str] = None
    ) -> "UpdateProtectionPolicyResponse":
        "Replaces the protection policy of a store."
        return cast(
            "UpdateProtectionPolicyResponse",
            self.call("updateProtectionPolicy", request, idempotency_key=idempotency_key),
        )

    def updateStore(
        self, request: "UpdateStoreRequest", *, idempotency_key: Optional[str] = None
    ) -> "UpdateStoreResponse":
        "Changes a store."
        return cast(
            "UpdateStoreResponse",
            self.call("updateStore", request, idempotency_key=idempotency_key),
        )

    def updateUser(
        self, request: "UpdateUserRequest", *, idempotency_key: Optional[str] = None
    ) -> "UpdateUserResponse":
        "Changes role, stores or access of a user. Ends all sessions of the user."
        return cast(
            "UpdateUserResponse",
            self.call("updateUser", request, idempotency_key=idempotency_key),
        )

    def updateWebhook(
        self, request: "UpdateWebhookRequest", *, idempotency_key: Optional[str] = None
    ) -> "UpdateWebhookResponse":
        "Changes the URL, the events or the secret of a webhook, or disables or enables it."
        return cast(
            "UpdateWebhookResponse",
            self.call("updateWebhook", request, idempotency_key=idempotency_key),
        )

    def uploadImageToProduct(
        self, request: "UploadImageToProductRequest", *, idempotency_key: Optional[str] = None
    ) -> "UploadImageToProductResponse":
        "Sets the picture of a product."
        return cast(
            "UploadImageToProductResponse",
            self.call("uploadImageToProduct", request, idempotency_key=idempotency_key),
        )

    def verifyPickupCode(
        self, request: "VerifyPickupCodeRequest", *, idempotency_key: Optional[str] = None
    ) -> "VerifyPickupCodeResponse":
        "Finds the order of a pick-up code and lists the goods to hand over."
        return cast(
            "VerifyPickupCodeResponse",
            self.call("verifyPickupCode", request, idempotency_key=idempotency_key),
        )

    def verifyProtectedItem(
        self, request: "VerifyProtectedItemRequest", *, idempotency_key: Optional[str] = None
    ) -> "VerifyProtectedItemResponse":
        "Decides whether a device may act on one item, and issues a single-use token if so."
        return cast(
            "VerifyProtectedItemResponse",
            self.call("verifyProtectedItem", request, idempotency_key=idempotency_key),
        )

    def verifySecurityTagDeactivation(
        self, request: "VerifySecurityTagDeactivationRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "VerifySecurityTagDeactivationResponse":
        "Decides whether the tags of a purchase may be removed, and issues one token for all of them to a device if so."
        return cast(
            "VerifySecurityTagDeactivationResponse",
            self.call("verifySecurityTagDeactivation", request, idempotency_key=idempotency_key),
        )

    def voidSale(
        self, request: "VoidSaleRequest", *, idempotency_key: Optional[str] = None
    ) -> "VoidSaleResponse":
        "Voids a sale of your own till: its rights end, and its goods alarm again."
        return cast(
            "VoidSaleResponse",
            self.call("voidSale", request, idempotency_key=idempotency_key),
        )


class AsyncOperations:
    """A coroutine for every operation."""

    async def call(self, operation: str, request: Mapping[str, Any], *, idempotency_key: Optional[str] = None) -> Any:
        raise NotImplementedError

    async def acceptInvitation(
        self, request: "AcceptInvitationRequest", *, idempotency_key: Optional[str] = None
    ) -> "AcceptInvitationResponse":
        "Accepts an invitation with a password, and signs the user in."
        return cast(
            "AcceptInvitationResponse",
            await self.call("acceptInvitation", request, idempotency_key=idempotency_key),
        )

    async def acknowledgeException(
        self, request: "AcknowledgeExceptionRequest", *, idempotency_key: Optional[str] = None
    ) -> "AcknowledgeExceptionResponse":
        "Acknowledges an exception."
        return cast(
            "AcknowledgeExceptionResponse",
            await self.call("acknowledgeException", request, idempotency_key=idempotency_key),
        )

    async def addLoyaltyPoints(
        self, request: "AddLoyaltyPointsRequest", *, idempotency_key: Optional[str] = None
    ) -> "AddLoyaltyPointsResponse":
        "Credits points, stamps or cashback to a customer."
        return cast(
            "AddLoyaltyPointsResponse",
            await self.call("addLoyaltyPoints", request, idempotency_key=idempotency_key),
        )

    async def agentLogin(
        self, request: "AgentLoginRequest", *, idempotency_key: Optional[str] = None
    ) -> "AgentLoginResponse":
        "Logs an agent in: the first call returns a challenge, the second sends the signed assertion."
        return cast(
            "AgentLoginResponse",
            await self.call("agentLogin", request, idempotency_key=idempotency_key),
        )

    async def answerAssistanceRequest(
        self, request: "AnswerAssistanceRequestRequest", *, idempotency_key: Optional[str] = None
    ) -> "AnswerAssistanceRequestResponse":
        "Answers a request for help or changes its status."
        return cast(
            "AnswerAssistanceRequestResponse",
            await self.call("answerAssistanceRequest", request, idempotency_key=idempotency_key),
        )

    async def approveCheckout(
        self, request: "ApproveCheckoutRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "ApproveCheckoutResponse":
        "Records that staff checked a basket that awaits approval, and whether it may be paid."
        return cast(
            "ApproveCheckoutResponse",
            await self.call("approveCheckout", request, idempotency_key=idempotency_key),
        )

    async def approveStoreRegistration(
        self, request: "ApproveStoreRegistrationRequest", *, idempotency_key: Optional[str] = None
    ) -> "ApproveStoreRegistrationResponse":
        "Approves a registration: creates its store, and its account if the request had no key. For administrators."
        return cast(
            "ApproveStoreRegistrationResponse",
            await self.call("approveStoreRegistration", request, idempotency_key=idempotency_key),
        )

    async def beginOpenIdSignIn(
        self, request: "BeginOpenIdSignInRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "BeginOpenIdSignInResponse":
        "Starts a sign-in at the OpenID Connect provider of the installation."
        return cast(
            "BeginOpenIdSignInResponse",
            await self.call("beginOpenIdSignIn", request, idempotency_key=idempotency_key),
        )

    async def beginPasskey(
        self, request: "BeginPasskeyRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "BeginPasskeyResponse":
        "Makes the challenge for a new passkey of the calling user."
        return cast(
            "BeginPasskeyResponse",
            await self.call("beginPasskey", request, idempotency_key=idempotency_key),
        )

    async def beginPasskeySignIn(
        self, request: "BeginPasskeySignInRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "BeginPasskeySignInResponse":
        "Makes the challenge for a sign-in with a passkey."
        return cast(
            "BeginPasskeySignInResponse",
            await self.call("beginPasskeySignIn", request, idempotency_key=idempotency_key),
        )

    async def beginSecondFactor(
        self, request: "BeginSecondFactorRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "BeginSecondFactorResponse":
        "Makes the secret for an authenticator app of the calling user."
        return cast(
            "BeginSecondFactorResponse",
            await self.call("beginSecondFactor", request, idempotency_key=idempotency_key),
        )

    async def bulkImportProducts(
        self, request: "BulkImportProductsRequest", *, idempotency_key: Optional[str] = None
    ) -> "BulkImportProductsResponse":
        "Adds up to 500 products to a store, or changes those that it already sells."
        return cast(
            "BulkImportProductsResponse",
            await self.call("bulkImportProducts", request, idempotency_key=idempotency_key),
        )

    async def callHelpToAlarm(
        self, request: "CallHelpToAlarmRequest", *, idempotency_key: Optional[str] = None
    ) -> "CallHelpToAlarmResponse":
        "Calls colleagues to a gate that alarmed."
        return cast(
            "CallHelpToAlarmResponse",
            await self.call("callHelpToAlarm", request, idempotency_key=idempotency_key),
        )

    async def changePassword(
        self, request: "ChangePasswordRequest", *, idempotency_key: Optional[str] = None
    ) -> "ChangePasswordResponse":
        "Changes the password of the calling user. Ends all other sessions."
        return cast(
            "ChangePasswordResponse",
            await self.call("changePassword", request, idempotency_key=idempotency_key),
        )

    async def checkIn(
        self, request: "CheckInRequest", *, idempotency_key: Optional[str] = None
    ) -> "CheckInResponse":
        "Opens a shopping session in a store."
        return cast(
            "CheckInResponse",
            await self.call("checkIn", request, idempotency_key=idempotency_key),
        )

    async def claimRegistration(
        self, request: "ClaimRegistrationRequest", *, idempotency_key: Optional[str] = None
    ) -> "ClaimRegistrationResponse":
        "Returns the keys of an approved request: the test keys once, and the first live secret key after the first live store is approved."
        return cast(
            "ClaimRegistrationResponse",
            await self.call("claimRegistration", request, idempotency_key=idempotency_key),
        )

    async def cloneOffer(
        self, request: "CloneOfferRequest", *, idempotency_key: Optional[str] = None
    ) -> "CloneOfferResponse":
        "Copies an offer to other stores, optionally with adjusted prices."
        return cast(
            "CloneOfferResponse",
            await self.call("cloneOffer", request, idempotency_key=idempotency_key),
        )

    async def closeStoreDay(
        self, request: "CloseStoreDayRequest", *, idempotency_key: Optional[str] = None
    ) -> "CloseStoreDayResponse":
        "Closes the days of a store since its last closing, permanently."
        return cast(
            "CloseStoreDayResponse",
            await self.call("closeStoreDay", request, idempotency_key=idempotency_key),
        )

    async def completeTestCheckout(
        self, request: "CompleteTestCheckoutRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "CompleteTestCheckoutResponse":
        "Ends a test checkout without its test page. Test keys only."
        return cast(
            "CompleteTestCheckoutResponse",
            await self.call("completeTestCheckout", request, idempotency_key=idempotency_key),
        )

    async def configurePSP(
        self, request: "ConfigurePSPRequest", *, idempotency_key: Optional[str] = None
    ) -> "ConfigurePSPResponse":
        "Sets the payment service provider of a store."
        return cast(
            "ConfigurePSPResponse",
            await self.call("configurePSP", request, idempotency_key=idempotency_key),
        )

    async def confirmSecondFactor(
        self, request: "ConfirmSecondFactorRequest", *, idempotency_key: Optional[str] = None
    ) -> "ConfirmSecondFactorResponse":
        "Confirms the authenticator app with a code. Ends all other sessions."
        return cast(
            "ConfirmSecondFactorResponse",
            await self.call("confirmSecondFactor", request, idempotency_key=idempotency_key),
        )

    async def confirmSignIn(
        self, request: "ConfirmSignInRequest", *, idempotency_key: Optional[str] = None
    ) -> "ConfirmSignInResponse":
        "Completes a sign-in with the second factor."
        return cast(
            "ConfirmSignInResponse",
            await self.call("confirmSignIn", request, idempotency_key=idempotency_key),
        )

    async def createApiKey(
        self, request: "CreateApiKeyRequest", *, idempotency_key: Optional[str] = None
    ) -> "CreateApiKeyResponse":
        "Creates a key in the mode of the calling key. The response is the only one that shows it."
        return cast(
            "CreateApiKeyResponse",
            await self.call("createApiKey", request, idempotency_key=idempotency_key),
        )

    async def createEnrolmentCode(
        self, request: "CreateEnrolmentCodeRequest", *, idempotency_key: Optional[str] = None
    ) -> "CreateEnrolmentCodeResponse":
        "Creates a code with which one edge agent enrols in a store."
        return cast(
            "CreateEnrolmentCodeResponse",
            await self.call("createEnrolmentCode", request, idempotency_key=idempotency_key),
        )

    async def createLoyaltyProgram(
        self, request: "CreateLoyaltyProgramRequest", *, idempotency_key: Optional[str] = None
    ) -> "CreateLoyaltyProgramResponse":
        "Creates a loyalty program for a store."
        return cast(
            "CreateLoyaltyProgramResponse",
            await self.call("createLoyaltyProgram", request, idempotency_key=idempotency_key),
        )

    async def createOffer(
        self, request: "CreateOfferRequest", *, idempotency_key: Optional[str] = None
    ) -> "CreateOfferResponse":
        "Publishes an offer to one or many stores."
        return cast(
            "CreateOfferResponse",
            await self.call("createOffer", request, idempotency_key=idempotency_key),
        )

    async def createSetupCode(
        self, request: "CreateSetupCodeRequest", *, idempotency_key: Optional[str] = None
    ) -> "CreateSetupCodeResponse":
        "Creates a code with which an agent of the store registers one device."
        return cast(
            "CreateSetupCodeResponse",
            await self.call("createSetupCode", request, idempotency_key=idempotency_key),
        )

    async def createZone(
        self, request: "CreateZoneRequest", *, idempotency_key: Optional[str] = None
    ) -> "CreateZoneResponse":
        "Creates a zone of a store with a QR code to display there."
        return cast(
            "CreateZoneResponse",
            await self.call("createZone", request, idempotency_key=idempotency_key),
        )

    async def decommissionDevice(
        self, request: "DecommissionDeviceRequest", *, idempotency_key: Optional[str] = None
    ) -> "DecommissionDeviceResponse":
        "Takes a device out of service. The cloud revokes its authorizations and issues no more."
        return cast(
            "DecommissionDeviceResponse",
            await self.call("decommissionDevice", request, idempotency_key=idempotency_key),
        )

    async def deleteOffer(
        self, request: "DeleteOfferRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "DeleteOfferResponse":
        "Deletes an offer and all its branch documents immediately."
        return cast(
            "DeleteOfferResponse",
            await self.call("deleteOffer", request, idempotency_key=idempotency_key),
        )

    async def deleteWebhook(
        self, request: "DeleteWebhookRequest", *, idempotency_key: Optional[str] = None
    ) -> "DeleteWebhookResponse":
        "Deletes a webhook. The cloud sends nothing more to it."
        return cast(
            "DeleteWebhookResponse",
            await self.call("deleteWebhook", request, idempotency_key=idempotency_key),
        )

    async def disposeAlarm(
        self, request: "DisposeAlarmRequest", *, idempotency_key: Optional[str] = None
    ) -> "DisposeAlarmResponse":
        "Stores what a person found out about a gate alarm."
        return cast(
            "DisposeAlarmResponse",
            await self.call("disposeAlarm", request, idempotency_key=idempotency_key),
        )

    async def disposeAlarms(
        self, request: "DisposeAlarmsRequest", *, idempotency_key: Optional[str] = None
    ) -> "DisposeAlarmsResponse":
        "Stores one disposition for many open alarms, for example after the fault of a gate."
        return cast(
            "DisposeAlarmsResponse",
            await self.call("disposeAlarms", request, idempotency_key=idempotency_key),
        )

    async def endRecall(
        self, request: "EndRecallRequest", *, idempotency_key: Optional[str] = None
    ) -> "EndRecallResponse":
        "Ends a recall: its goods are again what their status says, unless another recall stops them."
        return cast(
            "EndRecallResponse",
            await self.call("endRecall", request, idempotency_key=idempotency_key),
        )

    async def endSessions(
        self, request: "EndSessionsRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "EndSessionsResponse":
        "Ends one session of the calling user, or all of them."
        return cast(
            "EndSessionsResponse",
            await self.call("endSessions", request, idempotency_key=idempotency_key),
        )

    async def enrolEdgeAgent(
        self, request: "EnrolEdgeAgentRequest", *, idempotency_key: Optional[str] = None
    ) -> "EnrolEdgeAgentResponse":
        "Enrols an edge agent with a code and its own key. Needs no API key."
        return cast(
            "EnrolEdgeAgentResponse",
            await self.call("enrolEdgeAgent", request, idempotency_key=idempotency_key),
        )

    async def eraseCustomerData(
        self, request: "EraseCustomerDataRequest", *, idempotency_key: Optional[str] = None
    ) -> "EraseCustomerDataResponse":
        "Erases the data of one customer."
        return cast(
            "EraseCustomerDataResponse",
            await self.call("eraseCustomerData", request, idempotency_key=idempotency_key),
        )

    async def exportCustomerData(
        self, request: "ExportCustomerDataRequest", *, idempotency_key: Optional[str] = None
    ) -> "ExportCustomerDataResponse":
        "Exports all stored data of one customer."
        return cast(
            "ExportCustomerDataResponse",
            await self.call("exportCustomerData", request, idempotency_key=idempotency_key),
        )

    async def exportEpcisEvents(
        self, request: "ExportEpcisEventsRequest", *, idempotency_key: Optional[str] = None
    ) -> "ExportEpcisEventsResponse":
        "Exports the history of the goods in a store as EPCIS 2.0 events."
        return cast(
            "ExportEpcisEventsResponse",
            await self.call("exportEpcisEvents", request, idempotency_key=idempotency_key),
        )

    async def exportSalesData(
        self, request: "ExportSalesDataRequest", *, idempotency_key: Optional[str] = None
    ) -> "ExportSalesDataResponse":
        "Exports all paid purchases between two dates as JSON or CSV."
        return cast(
            "ExportSalesDataResponse",
            await self.call("exportSalesData", request, idempotency_key=idempotency_key),
        )

    async def fetchAccount(
        self, request: "FetchAccountRequest", *, idempotency_key: Optional[str] = None
    ) -> "FetchAccountResponse":
        "Returns one account of this cloud, and how much of its limits it uses. For administrators."
        return cast(
            "FetchAccountResponse",
            await self.call("fetchAccount", request, idempotency_key=idempotency_key),
        )

    async def fetchAccountSettings(
        self, request: "FetchAccountSettingsRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "FetchAccountSettingsResponse":
        "Returns the settings of the account."
        return cast(
            "FetchAccountSettingsResponse",
            await self.call("fetchAccountSettings", request, idempotency_key=idempotency_key),
        )

    async def fetchAccountStores(
        self, request: "FetchAccountStoresRequest", *, idempotency_key: Optional[str] = None
    ) -> "FetchAccountStoresResponse":
        "Lists the stores of an account of this cloud in both modes, oldest first. For administrators."
        return cast(
            "FetchAccountStoresResponse",
            await self.call("fetchAccountStores", request, idempotency_key=idempotency_key),
        )

    async def fetchAccounts(
        self, request: "FetchAccountsRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "FetchAccountsResponse":
        "Lists the accounts of this cloud, oldest first. For administrators."
        return cast(
            "FetchAccountsResponse",
            await self.call("fetchAccounts", request, idempotency_key=idempotency_key),
        )

    async def fetchActiveOffers(
        self, request: "FetchActiveOffersRequest", *, idempotency_key: Optional[str] = None
    ) -> "FetchActiveOffersResponse":
        "Lists the active offers of a store with their products, the newest first."
        return cast(
            "FetchActiveOffersResponse",
            await self.call("fetchActiveOffers", request, idempotency_key=idempotency_key),
        )

    async def fetchAgentConditions(
        self, request: "FetchAgentConditionsRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "FetchAgentConditionsResponse":
        "Counts the edge agents of a store or of the whole account by what is wrong with them."
        return cast(
            "FetchAgentConditionsResponse",
            await self.call("fetchAgentConditions", request, idempotency_key=idempotency_key),
        )

    async def fetchAgents(
        self, request: "FetchAgentsRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "FetchAgentsResponse":
        "Lists the edge agents of a store or of the whole account, with connection, document versions and unsent rows."
        return cast(
            "FetchAgentsResponse",
            await self.call("fetchAgents", request, idempotency_key=idempotency_key),
        )

    async def fetchAlarmNotices(
        self, request: "FetchAlarmNoticesRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "FetchAlarmNoticesResponse":
        "Returns whether this session gets push notices about alarms, and the public key to subscribe with."
        return cast(
            "FetchAlarmNoticesResponse",
            await self.call("fetchAlarmNotices", request, idempotency_key=idempotency_key),
        )

    async def fetchAlarms(
        self, request: "FetchAlarmsRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "FetchAlarmsResponse":
        "Lists alarms of a store or account with product, gate and fitting receipt, the latest first."
        return cast(
            "FetchAlarmsResponse",
            await self.call("fetchAlarms", request, idempotency_key=idempotency_key),
        )

    async def fetchAnalytics(
        self, request: "FetchAnalyticsRequest", *, idempotency_key: Optional[str] = None
    ) -> "FetchAnalyticsResponse":
        "Returns reports of a store by day, week or month."
        return cast(
            "FetchAnalyticsResponse",
            await self.call("fetchAnalytics", request, idempotency_key=idempotency_key),
        )

    async def fetchApiKeys(
        self, request: "FetchApiKeysRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "FetchApiKeysResponse":
        "Lists the keys of the account in the mode of the calling key, without the keys themselves."
        return cast(
            "FetchApiKeysResponse",
            await self.call("fetchApiKeys", request, idempotency_key=idempotency_key),
        )

    async def fetchAssistanceRequests(
        self, request: "FetchAssistanceRequestsRequest", *, idempotency_key: Optional[str] = None
    ) -> "FetchAssistanceRequestsResponse":
        "Lists requests for help in a store with their messages, the newest first."
        return cast(
            "FetchAssistanceRequestsResponse",
            await self.call("fetchAssistanceRequests", request, idempotency_key=idempotency_key),
        )

    async def fetchAuditLog(
        self, request: "FetchAuditLogRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "FetchAuditLogResponse":
        "Lists who changed what, oldest first."
        return cast(
            "FetchAuditLogResponse",
            await self.call("fetchAuditLog", request, idempotency_key=idempotency_key),
        )

    async def fetchClickCollectOrders(
        self, request: "FetchClickCollectOrdersRequest", *, idempotency_key: Optional[str] = None
    ) -> "FetchClickCollectOrdersResponse":
        "Lists the orders of a store, the newest first."
        return cast(
            "FetchClickCollectOrdersResponse",
            await self.call("fetchClickCollectOrders", request, idempotency_key=idempotency_key),
        )

    async def fetchClosings(
        self, request: "FetchClosingsRequest", *, idempotency_key: Optional[str] = None
    ) -> "FetchClosingsResponse":
        "Lists the closings of a store, newest first."
        return cast(
            "FetchClosingsResponse",
            await self.call("fetchClosings", request, idempotency_key=idempotency_key),
        )

    async def fetchDevices(
        self, request: "FetchDevicesRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "FetchDevicesResponse":
        "Lists the devices of a store or account."
        return cast(
            "FetchDevicesResponse",
            await self.call("fetchDevices", request, idempotency_key=idempotency_key),
        )

    async def fetchERPRecords(
        self, request: "FetchERPRecordsRequest", *, idempotency_key: Optional[str] = None
    ) -> "FetchERPRecordsResponse":
        "Lists purchase orders or suppliers that syncERP has stored."
        return cast(
            "FetchERPRecordsResponse",
            await self.call("fetchERPRecords", request, idempotency_key=idempotency_key),
        )

    async def fetchExceptions(
        self, request: "FetchExceptionsRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "FetchExceptionsResponse":
        "Lists exceptions that staff must look at, of a store or the whole account, newest first."
        return cast(
            "FetchExceptionsResponse",
            await self.call("fetchExceptions", request, idempotency_key=idempotency_key),
        )

    async def fetchIntegrations(
        self, request: "FetchIntegrationsRequest", *, idempotency_key: Optional[str] = None
    ) -> "FetchIntegrationsResponse":
        "Lists the payment provider of a store, and the systems that it reads, without their credentials."
        return cast(
            "FetchIntegrationsResponse",
            await self.call("fetchIntegrations", request, idempotency_key=idempotency_key),
        )

    async def fetchOffer(
        self, request: "FetchOfferRequest", *, idempotency_key: Optional[str] = None
    ) -> "FetchOfferResponse":
        "Returns an offer with its products and their prices in each store."
        return cast(
            "FetchOfferResponse",
            await self.call("fetchOffer", request, idempotency_key=idempotency_key),
        )

    async def fetchOfflineFigures(
        self, request: "FetchOfflineFiguresRequest", *, idempotency_key: Optional[str] = None
    ) -> "FetchOfflineFiguresResponse":
        "Returns what it cost that the agents of a store were offline."
        return cast(
            "FetchOfflineFiguresResponse",
            await self.call("fetchOfflineFigures", request, idempotency_key=idempotency_key),
        )

    async def fetchOpenTasks(
        self, request: "FetchOpenTasksRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "FetchOpenTasksResponse":
        "Counts what waits for a person in a store, or in all stores of the caller."
        return cast(
            "FetchOpenTasksResponse",
            await self.call("fetchOpenTasks", request, idempotency_key=idempotency_key),
        )

    async def fetchOperators(
        self, request: "FetchOperatorsRequest", *, idempotency_key: Optional[str] = None
    ) -> "FetchOperatorsResponse":
        "Lists the operators of a store."
        return cast(
            "FetchOperatorsResponse",
            await self.call("fetchOperators", request, idempotency_key=idempotency_key),
        )

    async def fetchPasskeys(
        self, request: "FetchPasskeysRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "FetchPasskeysResponse":
        "Lists the passkeys of the calling user, oldest first."
        return cast(
            "FetchPasskeysResponse",
            await self.call("fetchPasskeys", request, idempotency_key=idempotency_key),
        )

    async def fetchProduct(
        self, request: "FetchProductRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "FetchProductResponse":
        "Returns one product by id or barcode."
        return cast(
            "FetchProductResponse",
            await self.call("fetchProduct", request, idempotency_key=idempotency_key),
        )

    async def fetchProducts(
        self, request: "FetchProductsRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "FetchProductsResponse":
        "Lists the products of a store."
        return cast(
            "FetchProductsResponse",
            await self.call("fetchProducts", request, idempotency_key=idempotency_key),
        )

    async def fetchProfile(
        self, request: "FetchProfileRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "FetchProfileResponse":
        "Returns the calling user and the rights of this session."
        return cast(
            "FetchProfileResponse",
            await self.call("fetchProfile", request, idempotency_key=idempotency_key),
        )

    async def fetchProtectedItem(
        self, request: "FetchProtectedItemRequest", *, idempotency_key: Optional[str] = None
    ) -> "FetchProtectedItemResponse":
        "Returns one tagged item with its status and its status history."
        return cast(
            "FetchProtectedItemResponse",
            await self.call("fetchProtectedItem", request, idempotency_key=idempotency_key),
        )

    async def fetchProtectionEvents(
        self, request: "FetchProtectionEventsRequest", *, idempotency_key: Optional[str] = None
    ) -> "FetchProtectionEventsResponse":
        "Lists the protection events of a store in the order in which they became durable."
        return cast(
            "FetchProtectionEventsResponse",
            await self.call("fetchProtectionEvents", request, idempotency_key=idempotency_key),
        )

    async def fetchProtectionPolicy(
        self, request: "FetchProtectionPolicyRequest", *, idempotency_key: Optional[str] = None
    ) -> "FetchProtectionPolicyResponse":
        "Returns the protection policy of a store and the maximum loss while it is offline."
        return cast(
            "FetchProtectionPolicyResponse",
            await self.call("fetchProtectionPolicy", request, idempotency_key=idempotency_key),
        )

    async def fetchPurchase(
        self, request: "FetchPurchaseRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "FetchPurchaseResponse":
        "Returns one purchase with its receipt data."
        return cast(
            "FetchPurchaseResponse",
            await self.call("fetchPurchase", request, idempotency_key=idempotency_key),
        )

    async def fetchPurchaseHistory(
        self, request: "FetchPurchaseHistoryRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "FetchPurchaseHistoryResponse":
        "Lists purchases, the newest first."
        return cast(
            "FetchPurchaseHistoryResponse",
            await self.call("fetchPurchaseHistory", request, idempotency_key=idempotency_key),
        )

    async def fetchPushKey(
        self, request: "FetchPushKeyRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "FetchPushKeyResponse":
        "Returns the public key with which a browser subscribes to push notifications."
        return cast(
            "FetchPushKeyResponse",
            await self.call("fetchPushKey", request, idempotency_key=idempotency_key),
        )

    async def fetchPushSubscriptions(
        self, request: "FetchPushSubscriptionsRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "FetchPushSubscriptionsResponse":
        "Lists the push subscriptions of browsers and of endpoints of your own, oldest first."
        return cast(
            "FetchPushSubscriptionsResponse",
            await self.call("fetchPushSubscriptions", request, idempotency_key=idempotency_key),
        )

    async def fetchRecalls(
        self, request: "FetchRecallsRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "FetchRecallsResponse":
        "Lists recalls, of a store or of all stores that the key may see, newest first."
        return cast(
            "FetchRecallsResponse",
            await self.call("fetchRecalls", request, idempotency_key=idempotency_key),
        )

    async def fetchRegistrations(
        self, request: "FetchRegistrationsRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "FetchRegistrationsResponse":
        "Lists registrations, oldest first: for administrators of the cloud all of them, otherwise those of the account."
        return cast(
            "FetchRegistrationsResponse",
            await self.call("fetchRegistrations", request, idempotency_key=idempotency_key),
        )

    async def fetchSessions(
        self, request: "FetchSessionsRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "FetchSessionsResponse":
        "Lists the sessions of the calling user, oldest first."
        return cast(
            "FetchSessionsResponse",
            await self.call("fetchSessions", request, idempotency_key=idempotency_key),
        )

    async def fetchSignedDocuments(
        self, request: "FetchSignedDocumentsRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "FetchSignedDocumentsResponse":
        "Returns the signed documents that an agent does not have yet, and always the freshness document."
        return cast(
            "FetchSignedDocumentsResponse",
            await self.call("fetchSignedDocuments", request, idempotency_key=idempotency_key),
        )

    async def fetchStock(
        self, request: "FetchStockRequest", *, idempotency_key: Optional[str] = None
    ) -> "FetchStockResponse":
        "Lists the counted products of a store: pieces, reserved pieces and available pieces."
        return cast(
            "FetchStockResponse",
            await self.call("fetchStock", request, idempotency_key=idempotency_key),
        )

    async def fetchStore(
        self, request: "FetchStoreRequest", *, idempotency_key: Optional[str] = None
    ) -> "FetchStoreResponse":
        "Returns one store."
        return cast(
            "FetchStoreResponse",
            await self.call("fetchStore", request, idempotency_key=idempotency_key),
        )

    async def fetchStoreNames(
        self, request: "FetchStoreNamesRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "FetchStoreNamesResponse":
        "Lists names and addresses of the stores of the account, for a choice."
        return cast(
            "FetchStoreNamesResponse",
            await self.call("fetchStoreNames", request, idempotency_key=idempotency_key),
        )

    async def fetchStores(
        self, request: "FetchStoresRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "FetchStoresResponse":
        "Lists the stores of the account, in a city or within a radius."
        return cast(
            "FetchStoresResponse",
            await self.call("fetchStores", request, idempotency_key=idempotency_key),
        )

    async def fetchUsers(
        self, request: "FetchUsersRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "FetchUsersResponse":
        "Lists the users of the account, oldest first."
        return cast(
            "FetchUsersResponse",
            await self.call("fetchUsers", request, idempotency_key=idempotency_key),
        )

    async def fetchWebhookDeliveries(
        self, request: "FetchWebhookDeliveriesRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "FetchWebhookDeliveriesResponse":
        "Lists deliveries of the last 30 days with their attempts, newest first."
        return cast(
            "FetchWebhookDeliveriesResponse",
            await self.call("fetchWebhookDeliveries", request, idempotency_key=idempotency_key),
        )

    async def fetchWebhookEvents(
        self, request: "FetchWebhookEventsRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "FetchWebhookEventsResponse":
        "Lists the events of the last 30 days in order, even if no webhook was registered."
        return cast(
            "FetchWebhookEventsResponse",
            await self.call("fetchWebhookEvents", request, idempotency_key=idempotency_key),
        )

    async def fetchWebhooks(
        self, request: "FetchWebhooksRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "FetchWebhooksResponse":
        "Lists the webhooks, all or those of one store."
        return cast(
            "FetchWebhooksResponse",
            await self.call("fetchWebhooks", request, idempotency_key=idempotency_key),
        )

    async def fetchZones(
        self, request: "FetchZonesRequest", *, idempotency_key: Optional[str] = None
    ) -> "FetchZonesResponse":
        "Lists the zones of a store."
        return cast(
            "FetchZonesResponse",
            await self.call("fetchZones", request, idempotency_key=idempotency_key),
        )

    async def finishOpenIdSignIn(
        self, request: "FinishOpenIdSignInRequest", *, idempotency_key: Optional[str] = None
    ) -> "FinishOpenIdSignInResponse":
        "Signs a user in with the answer of the OpenID Connect provider."
        return cast(
            "FinishOpenIdSignInResponse",
            await self.call("finishOpenIdSignIn", request, idempotency_key=idempotency_key),
        )

    async def generateCodes(
        self, request: "GenerateCodesRequest", *, idempotency_key: Optional[str] = None
    ) -> "GenerateCodesResponse":
        "Draws QR codes to display in a store."
        return cast(
            "GenerateCodesResponse",
            await self.call("generateCodes", request, idempotency_key=idempotency_key),
        )

    async def generateReceiptQR(
        self, request: "GenerateReceiptQRRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "GenerateReceiptQRResponse":
        "Returns the QR code of a receipt."
        return cast(
            "GenerateReceiptQRResponse",
            await self.call("generateReceiptQR", request, idempotency_key=idempotency_key),
        )

    async def generateReceiptWithQR(
        self, request: "GenerateReceiptWithQRRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "GenerateReceiptWithQRResponse":
        "Another name of generateReceiptQR."
        return cast(
            "GenerateReceiptWithQRResponse",
            await self.call("generateReceiptWithQR", request, idempotency_key=idempotency_key),
        )

    async def getLoyaltyAnalytics(
        self, request: "GetLoyaltyAnalyticsRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "GetLoyaltyAnalyticsResponse":
        "Returns members, points and redemptions: in total, by month and by program."
        return cast(
            "GetLoyaltyAnalyticsResponse",
            await self.call("getLoyaltyAnalytics", request, idempotency_key=idempotency_key),
        )

    async def getLoyaltyProgram(
        self, request: "GetLoyaltyProgramRequest", *, idempotency_key: Optional[str] = None
    ) -> "GetLoyaltyProgramResponse":
        "Returns one loyalty program with its QR code to print."
        return cast(
            "GetLoyaltyProgramResponse",
            await self.call("getLoyaltyProgram", request, idempotency_key=idempotency_key),
        )

    async def getLoyaltyPrograms(
        self, request: "GetLoyaltyProgramsRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "GetLoyaltyProgramsResponse":
        "Lists the loyalty programs of all own stores."
        return cast(
            "GetLoyaltyProgramsResponse",
            await self.call("getLoyaltyPrograms", request, idempotency_key=idempotency_key),
        )

    async def getLoyaltyWebhookEvents(
        self, request: "GetLoyaltyWebhookEventsRequest", *, idempotency_key: Optional[str] = None
    ) -> "GetLoyaltyWebhookEventsResponse":
        "Registers a webhook for events of a store; with GET, lists webhooks."
        return cast(
            "GetLoyaltyWebhookEventsResponse",
            await self.call("getLoyaltyWebhookEvents", request, idempotency_key=idempotency_key),
        )

    async def getManagerOffers(
        self, request: "GetManagerOffersRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "GetManagerOffersResponse":
        "Lists the offers of the account, the newest first, one entry for all branches of an offer."
        return cast(
            "GetManagerOffersResponse",
            await self.call("getManagerOffers", request, idempotency_key=idempotency_key),
        )

    async def getReceiptFromCode(
        self, request: "GetReceiptFromCodeRequest", *, idempotency_key: Optional[str] = None
    ) -> "GetReceiptFromCodeResponse":
        "Finds the receipt of a sale by a code that its till printed."
        return cast(
            "GetReceiptFromCodeResponse",
            await self.call("getReceiptFromCode", request, idempotency_key=idempotency_key),
        )

    async def getReceiptFromToken(
        self, request: "GetReceiptFromTokenRequest", *, idempotency_key: Optional[str] = None
    ) -> "GetReceiptFromTokenResponse":
        "Returns a receipt by its token. No authentication."
        return cast(
            "GetReceiptFromTokenResponse",
            await self.call("getReceiptFromToken", request, idempotency_key=idempotency_key),
        )

    async def getStoreLoyaltyPrograms(
        self, request: "GetStoreLoyaltyProgramsRequest", *, idempotency_key: Optional[str] = None
    ) -> "GetStoreLoyaltyProgramsResponse":
        "Lists the loyalty programs of one store."
        return cast(
            "GetStoreLoyaltyProgramsResponse",
            await self.call("getStoreLoyaltyPrograms", request, idempotency_key=idempotency_key),
        )

    async def importProducts(
        self, request: "ImportProductsForm", *, idempotency_key: Optional[str] = None
    ) -> "ImportProductsResponse":
        "Imports products from a spreadsheet: .xlsx or .csv, up to 10,000 rows."
        return cast(
            "ImportProductsResponse",
            await self.call("importProducts", request, idempotency_key=idempotency_key),
        )

    async def insertProduct(
        self, request: "InsertProductRequest", *, idempotency_key: Optional[str] = None
    ) -> "InsertProductResponse":
        "Adds one product to a store."
        return cast(
            "InsertProductResponse",
            await self.call("insertProduct", request, idempotency_key=idempotency_key),
        )

    async def insertStore(
        self, request: "InsertStoreRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> Union["InsertStoreResponse1", "InsertStoreResponse2"]:
        "Adds a store: a demo store at once with a test key, a registration for review with a live key."
        return cast(
            Union["InsertStoreResponse1", "InsertStoreResponse2"],
            await self.call("insertStore", request, idempotency_key=idempotency_key),
        )

    async def inviteUser(
        self, request: "InviteUserRequest", *, idempotency_key: Optional[str] = None
    ) -> "InviteUserResponse":
        "Invites a person to the console. Only this response contains the link."
        return cast(
            "InviteUserResponse",
            await self.call("inviteUser", request, idempotency_key=idempotency_key),
        )

    async def issueLoyaltyCard(
        self, request: "IssueLoyaltyCardRequest", *, idempotency_key: Optional[str] = None
    ) -> "IssueLoyaltyCardResponse":
        "Returns the loyalty card of a customer: a page with balance, rewards and QR code."
        return cast(
            "IssueLoyaltyCardResponse",
            await self.call("issueLoyaltyCard", request, idempotency_key=idempotency_key),
        )

    async def loyaltyCheckIn(
        self, request: "LoyaltyCheckInRequest", *, idempotency_key: Optional[str] = None
    ) -> "LoyaltyCheckInResponse":
        "Checks a customer in by the QR code at the counter or by the position."
        return cast(
            "LoyaltyCheckInResponse",
            await self.call("loyaltyCheckIn", request, idempotency_key=idempotency_key),
        )

    async def markPurchaseCancelled(
        self, request: "MarkPurchaseCancelledRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "MarkPurchaseCancelledResponse":
        "Cancels a purchase and refunds it if it was paid."
        return cast(
            "MarkPurchaseCancelledResponse",
            await self.call("markPurchaseCancelled", request, idempotency_key=idempotency_key),
        )

    async def moveReceiptHome(
        self, request: "MoveReceiptHomeRequest", *, idempotency_key: Optional[str] = None
    ) -> "MoveReceiptHomeResponse":
        "Moves a store’s receipt home, which redeems its receipts, to another agent or to the cloud."
        return cast(
            "MoveReceiptHomeResponse",
            await self.call("moveReceiptHome", request, idempotency_key=idempotency_key),
        )

    async def processPayment(
        self, request: "ProcessPaymentRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "ProcessPaymentResponse":
        "Opens the payment of a purchase, or returns the open one."
        return cast(
            "ProcessPaymentResponse",
            await self.call("processPayment", request, idempotency_key=idempotency_key),
        )

    async def pushToERP(
        self, request: "PushToERPRequest", *, idempotency_key: Optional[str] = None
    ) -> "PushToERPResponse":
        "Writes records, such as transactions, to an ERP system."
        return cast(
            "PushToERPResponse",
            await self.call("pushToERP", request, idempotency_key=idempotency_key),
        )

    async def pushToPOS(
        self, request: "PushToPOSRequest", *, idempotency_key: Optional[str] = None
    ) -> "PushToPOSResponse":
        "Writes records, such as transactions, to a till system."
        return cast(
            "PushToPOSResponse",
            await self.call("pushToPOS", request, idempotency_key=idempotency_key),
        )

    async def recallProducts(
        self, request: "RecallProductsRequest", *, idempotency_key: Optional[str] = None
    ) -> "RecallProductsResponse":
        "Recalls goods: from now on they are neither sold nor released, and gates alarm for them."
        return cast(
            "RecallProductsResponse",
            await self.call("recallProducts", request, idempotency_key=idempotency_key),
        )

    async def recordEngagement(
        self, request: "RecordEngagementRequest", *, idempotency_key: Optional[str] = None
    ) -> "RecordEngagementResponse":
        "Counts an engagement of a shopper with a store or an offer."
        return cast(
            "RecordEngagementResponse",
            await self.call("recordEngagement", request, idempotency_key=idempotency_key),
        )

    async def recordReturns(
        self, request: "RecordReturnsRequest", *, idempotency_key: Optional[str] = None
    ) -> "RecordReturnsResponse":
        "Records goods that came back to your own tills: their tags alarm again."
        return cast(
            "RecordReturnsResponse",
            await self.call("recordReturns", request, idempotency_key=idempotency_key),
        )

    async def recordSales(
        self, request: "RecordSalesRequest", *, idempotency_key: Optional[str] = None
    ) -> "RecordSalesResponse":
        "Records sales of your own tills, so that their goods leave without an alarm."
        return cast(
            "RecordSalesResponse",
            await self.call("recordSales", request, idempotency_key=idempotency_key),
        )

    async def redeemLoyaltyPoints(
        self, request: "RedeemLoyaltyPointsRequest", *, idempotency_key: Optional[str] = None
    ) -> "RedeemLoyaltyPointsResponse":
        "Redeems points, stamps or cashback of a customer, for a reward or as an amount."
        return cast(
            "RedeemLoyaltyPointsResponse",
            await self.call("redeemLoyaltyPoints", request, idempotency_key=idempotency_key),
        )

    async def redeemProtectionAuthorization(
        self, request: "RedeemProtectionAuthorizationRequest", *, idempotency_key: Optional[str] = None
    ) -> "RedeemProtectionAuthorizationResponse":
        "Redeems one step of an authorization. Call it before the device acts, and again with the outcome."
        return cast(
            "RedeemProtectionAuthorizationResponse",
            await self.call("redeemProtectionAuthorization", request, idempotency_key=idempotency_key),
        )

    async def redeliverWebhook(
        self, request: "RedeliverWebhookRequest", *, idempotency_key: Optional[str] = None
    ) -> "RedeliverWebhookResponse":
        "Sends an event to its webhook again, with the same id."
        return cast(
            "RedeliverWebhookResponse",
            await self.call("redeliverWebhook", request, idempotency_key=idempotency_key),
        )

    async def refundPayment(
        self, request: "RefundPaymentRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "RefundPaymentResponse":
        "Refunds a payment, in whole or in part."
        return cast(
            "RefundPaymentResponse",
            await self.call("refundPayment", request, idempotency_key=idempotency_key),
        )

    async def registerAlarmNotices(
        self, request: "RegisterAlarmNoticesRequest", *, idempotency_key: Optional[str] = None
    ) -> "RegisterAlarmNoticesResponse":
        "Sends push notices about alarms to the browser of this session."
        return cast(
            "RegisterAlarmNoticesResponse",
            await self.call("registerAlarmNotices", request, idempotency_key=idempotency_key),
        )

    async def registerDevice(
        self, request: "RegisterDeviceRequest", *, idempotency_key: Optional[str] = None
    ) -> "RegisterDeviceResponse":
        "Registers a device in a store and returns its deviceId."
        return cast(
            "RegisterDeviceResponse",
            await self.call("registerDevice", request, idempotency_key=idempotency_key),
        )

    async def registerDeviceWithCode(
        self, request: "RegisterDeviceWithCodeRequest", *, idempotency_key: Optional[str] = None
    ) -> "RegisterDeviceWithCodeResponse":
        "Registers a device for the calling agent, with a code of createSetupCode."
        return cast(
            "RegisterDeviceWithCodeResponse",
            await self.call("registerDeviceWithCode", request, idempotency_key=idempotency_key),
        )

    async def registerOperator(
        self, request: "RegisterOperatorRequest", *, idempotency_key: Optional[str] = None
    ) -> "RegisterOperatorResponse":
        "Registers an operator who may approve at the stations of a store. Only this response contains the badge to print."
        return cast(
            "RegisterOperatorResponse",
            await self.call("registerOperator", request, idempotency_key=idempotency_key),
        )

    async def registerPasskey(
        self, request: "RegisterPasskeyRequest", *, idempotency_key: Optional[str] = None
    ) -> "RegisterPasskeyResponse":
        "Stores a new passkey of the calling user. Ends all other sessions."
        return cast(
            "RegisterPasskeyResponse",
            await self.call("registerPasskey", request, idempotency_key=idempotency_key),
        )

    async def registerProductToStore(
        self, request: "RegisterProductToStoreRequest", *, idempotency_key: Optional[str] = None
    ) -> "RegisterProductToStoreResponse":
        "Adds a product of the account to another store, or sets the price at which a store sells it."
        return cast(
            "RegisterProductToStoreResponse",
            await self.call("registerProductToStore", request, idempotency_key=idempotency_key),
        )

    async def registerProtectedItems(
        self, request: "RegisterProtectedItemsRequest", *, idempotency_key: Optional[str] = None
    ) -> "RegisterProtectedItemsResponse":
        "Registers tagged items, or updates items with a known identifier."
        return cast(
            "RegisterProtectedItemsResponse",
            await self.call("registerProtectedItems", request, idempotency_key=idempotency_key),
        )

    async def registerPushSubscription(
        self, request: "RegisterPushSubscriptionRequest", *, idempotency_key: Optional[str] = None
    ) -> "RegisterPushSubscriptionResponse":
        "Sends push notifications about orders to a browser, or to an HTTPS endpoint of your own."
        return cast(
            "RegisterPushSubscriptionResponse",
            await self.call("registerPushSubscription", request, idempotency_key=idempotency_key),
        )

    async def registerWebhook(
        self, request: "RegisterWebhookRequest", *, idempotency_key: Optional[str] = None
    ) -> "RegisterWebhookResponse":
        "Registers a URL that receives events."
        return cast(
            "RegisterWebhookResponse",
            await self.call("registerWebhook", request, idempotency_key=idempotency_key),
        )

    async def rejectStoreRegistration(
        self, request: "RejectStoreRegistrationRequest", *, idempotency_key: Optional[str] = None
    ) -> "RejectStoreRegistrationResponse":
        "Rejects a registration with a reason for the merchant. For administrators."
        return cast(
            "RejectStoreRegistrationResponse",
            await self.call("rejectStoreRegistration", request, idempotency_key=idempotency_key),
        )

    async def removeAlarmNotices(
        self, request: "RemoveAlarmNoticesRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "RemoveAlarmNoticesResponse":
        "Ends the push notices of this session. Does nothing if there are none."
        return cast(
            "RemoveAlarmNoticesResponse",
            await self.call("removeAlarmNotices", request, idempotency_key=idempotency_key),
        )

    async def removeOperator(
        self, request: "RemoveOperatorRequest", *, idempotency_key: Optional[str] = None
    ) -> "RemoveOperatorResponse":
        "Removes an operator, who can no longer approve, and revokes the unused authorizations that they approved."
        return cast(
            "RemoveOperatorResponse",
            await self.call("removeOperator", request, idempotency_key=idempotency_key),
        )

    async def removePasskey(
        self, request: "RemovePasskeyRequest", *, idempotency_key: Optional[str] = None
    ) -> "RemovePasskeyResponse":
        "Removes a passkey of the calling user. Ends all other sessions."
        return cast(
            "RemovePasskeyResponse",
            await self.call("removePasskey", request, idempotency_key=idempotency_key),
        )

    async def removeProductFromStore(
        self, request: "RemoveProductFromStoreRequest", *, idempotency_key: Optional[str] = None
    ) -> "RemoveProductFromStoreResponse":
        "Removes a product from a store."
        return cast(
            "RemoveProductFromStoreResponse",
            await self.call("removeProductFromStore", request, idempotency_key=idempotency_key),
        )

    async def removePushSubscription(
        self, request: "RemovePushSubscriptionRequest", *, idempotency_key: Optional[str] = None
    ) -> "RemovePushSubscriptionResponse":
        "Ends a push subscription and discards its queued notices."
        return cast(
            "RemovePushSubscriptionResponse",
            await self.call("removePushSubscription", request, idempotency_key=idempotency_key),
        )

    async def removeSecondFactor(
        self, request: "RemoveSecondFactorRequest", *, idempotency_key: Optional[str] = None
    ) -> "RemoveSecondFactorResponse":
        "Removes the second factor of the calling user. Ends all sessions."
        return cast(
            "RemoveSecondFactorResponse",
            await self.call("removeSecondFactor", request, idempotency_key=idempotency_key),
        )

    async def removeUser(
        self, request: "RemoveUserRequest", *, idempotency_key: Optional[str] = None
    ) -> "RemoveUserResponse":
        "Removes a user, or withdraws an open invitation. Ends all sessions of the user at once."
        return cast(
            "RemoveUserResponse",
            await self.call("removeUser", request, idempotency_key=idempotency_key),
        )

    async def reportDeviceHeartbeat(
        self, request: "ReportDeviceHeartbeatRequest", *, idempotency_key: Optional[str] = None
    ) -> "ReportDeviceHeartbeatResponse":
        "Reports that a device is alive. If an agent calls it, it also adopts the device."
        return cast(
            "ReportDeviceHeartbeatResponse",
            await self.call("reportDeviceHeartbeat", request, idempotency_key=idempotency_key),
        )

    async def reportProtectionEvents(
        self, request: "ReportProtectionEventsRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "ReportProtectionEventsResponse":
        "Stores protection events of a merchant’s own devices, or a signed batch of an agent’s journal."
        return cast(
            "ReportProtectionEventsResponse",
            await self.call("reportProtectionEvents", request, idempotency_key=idempotency_key),
        )

    async def requestAssistance(
        self, request: "RequestAssistanceRequest", *, idempotency_key: Optional[str] = None
    ) -> "RequestAssistanceResponse":
        "Requests help in a zone."
        return cast(
            "RequestAssistanceResponse",
            await self.call("requestAssistance", request, idempotency_key=idempotency_key),
        )

    async def resolveAgentFork(
        self, request: "ResolveAgentForkRequest", *, idempotency_key: Optional[str] = None
    ) -> "ResolveAgentForkResponse":
        "Resolves a forked agent, whose ledger exists twice: the remaining copy continues, or both are revoked."
        return cast(
            "ResolveAgentForkResponse",
            await self.call("resolveAgentFork", request, idempotency_key=idempotency_key),
        )

    async def resolveRedemption(
        self, request: "ResolveRedemptionRequest", *, idempotency_key: Optional[str] = None
    ) -> "ResolveRedemptionResponse":
        "Resolves an unknown or failed outcome with what staff saw."
        return cast(
            "ResolveRedemptionResponse",
            await self.call("resolveRedemption", request, idempotency_key=idempotency_key),
        )

    async def reuseTags(
        self, request: "ReuseTagsRequest", *, idempotency_key: Optional[str] = None
    ) -> "ReuseTagsResponse":
        "Puts released hard tags on other goods."
        return cast(
            "ReuseTagsResponse",
            await self.call("reuseTags", request, idempotency_key=idempotency_key),
        )

    async def revokeAgent(
        self, request: "RevokeAgentRequest", *, idempotency_key: Optional[str] = None
    ) -> "RevokeAgentResponse":
        "Revokes an edge agent for good, for example a stolen or replaced machine."
        return cast(
            "RevokeAgentResponse",
            await self.call("revokeAgent", request, idempotency_key=idempotency_key),
        )

    async def revokeApiKey(
        self, request: "RevokeApiKeyRequest", *, idempotency_key: Optional[str] = None
    ) -> "RevokeApiKeyResponse":
        "Revokes a key at once."
        return cast(
            "RevokeApiKeyResponse",
            await self.call("revokeApiKey", request, idempotency_key=idempotency_key),
        )

    async def revokeProtectionAuthorization(
        self, request: "RevokeProtectionAuthorizationRequest", *, idempotency_key: Optional[str] = None
    ) -> "RevokeProtectionAuthorizationResponse":
        "Revokes an authorization. Redeemed steps stay redeemed."
        return cast(
            "RevokeProtectionAuthorizationResponse",
            await self.call("revokeProtectionAuthorization", request, idempotency_key=idempotency_key),
        )

    async def revokeTill(
        self, request: "RevokeTillRequest", *, idempotency_key: Optional[str] = None
    ) -> "RevokeTillResponse":
        "Stops a till that cannot be trusted: its sales release nothing any more."
        return cast(
            "RevokeTillResponse",
            await self.call("revokeTill", request, idempotency_key=idempotency_key),
        )

    async def rollApiKey(
        self, request: "RollApiKeyRequest", *, idempotency_key: Optional[str] = None
    ) -> "RollApiKeyResponse":
        "Replaces a key by a new one. Both work until the overlap ends."
        return cast(
            "RollApiKeyResponse",
            await self.call("rollApiKey", request, idempotency_key=idempotency_key),
        )

    async def rollWebhookSecret(
        self, request: "RollWebhookSecretRequest", *, idempotency_key: Optional[str] = None
    ) -> "RollWebhookSecretResponse":
        "Replaces the secret of a webhook. The previous one also signs until the overlap ends."
        return cast(
            "RollWebhookSecretResponse",
            await self.call("rollWebhookSecret", request, idempotency_key=idempotency_key),
        )

    async def rotateAgentKey(
        self, request: "RotateAgentKeyRequest", *, idempotency_key: Optional[str] = None
    ) -> "RotateAgentKeyResponse":
        "Rotates an agent’s own key. The old key stays valid until the agent uses the new one."
        return cast(
            "RotateAgentKeyResponse",
            await self.call("rotateAgentKey", request, idempotency_key=idempotency_key),
        )

    async def rotateSigningKey(
        self, request: "RotateSigningKeyRequest", *, idempotency_key: Optional[str] = None
    ) -> "RotateSigningKeyResponse":
        "Rotates a signing key of the cloud, or revokes one at once. For administrators."
        return cast(
            "RotateSigningKeyResponse",
            await self.call("rotateSigningKey", request, idempotency_key=idempotency_key),
        )

    async def searchProducts(
        self, request: "SearchProductsRequest", *, idempotency_key: Optional[str] = None
    ) -> "SearchProductsResponse":
        "Finds products of a store by the beginnings of words."
        return cast(
            "SearchProductsResponse",
            await self.call("searchProducts", request, idempotency_key=idempotency_key),
        )

    async def sendTestWebhook(
        self, request: "SendTestWebhookRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "SendTestWebhookResponse":
        "Sends a test event to one webhook, or to all that are subscribed to it."
        return cast(
            "SendTestWebhookResponse",
            await self.call("sendTestWebhook", request, idempotency_key=idempotency_key),
        )

    async def setStock(
        self, request: "SetStockRequest", *, idempotency_key: Optional[str] = None
    ) -> "SetStockResponse":
        "Sets how many pieces of a product a store has."
        return cast(
            "SetStockResponse",
            await self.call("setStock", request, idempotency_key=idempotency_key),
        )

    async def setStorePackage(
        self, request: "SetStorePackageRequest", *, idempotency_key: Optional[str] = None
    ) -> "SetStorePackageResponse":
        "Sets the package of any store immediately. Administrators only."
        return cast(
            "SetStorePackageResponse",
            await self.call("setStorePackage", request, idempotency_key=idempotency_key),
        )

    async def signIn(
        self, request: "SignInRequest", *, idempotency_key: Optional[str] = None
    ) -> "SignInResponse":
        "Signs a user in with e-mail address and password."
        return cast(
            "SignInResponse",
            await self.call("signIn", request, idempotency_key=idempotency_key),
        )

    async def signInWithPasskey(
        self, request: "SignInWithPasskeyRequest", *, idempotency_key: Optional[str] = None
    ) -> "SignInWithPasskeyResponse":
        "Signs a user in with a passkey, which also counts as the second factor."
        return cast(
            "SignInWithPasskeyResponse",
            await self.call("signInWithPasskey", request, idempotency_key=idempotency_key),
        )

    async def signOut(
        self, request: "SignOutRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "SignOutResponse":
        "Ends the session of this call."
        return cast(
            "SignOutResponse",
            await self.call("signOut", request, idempotency_key=idempotency_key),
        )

    async def simulateProtectionPolicy(
        self, request: "SimulateProtectionPolicyRequest", *, idempotency_key: Optional[str] = None
    ) -> "SimulateProtectionPolicyResponse":
        "Applies another protection policy to recent requests and returns the decisions that would change."
        return cast(
            "SimulateProtectionPolicyResponse",
            await self.call("simulateProtectionPolicy", request, idempotency_key=idempotency_key),
        )

    async def simulateStorePackage(
        self, request: "SimulateStorePackageRequest", *, idempotency_key: Optional[str] = None
    ) -> "SimulateStorePackageResponse":
        "Says what another package would change in a store, and changes nothing. Administrators only."
        return cast(
            "SimulateStorePackageResponse",
            await self.call("simulateStorePackage", request, idempotency_key=idempotency_key),
        )

    async def startCheckout(
        self, request: "StartCheckoutRequest", *, idempotency_key: Optional[str] = None
    ) -> "StartCheckoutResponse":
        "Creates a purchase from a basket and opens its payment."
        return cast(
            "StartCheckoutResponse",
            await self.call("startCheckout", request, idempotency_key=idempotency_key),
        )

    async def submitClickCollectOrder(
        self, request: "SubmitClickCollectOrderRequest", *, idempotency_key: Optional[str] = None
    ) -> "SubmitClickCollectOrderResponse":
        "Orders products for pick-up in a store."
        return cast(
            "SubmitClickCollectOrderResponse",
            await self.call("submitClickCollectOrder", request, idempotency_key=idempotency_key),
        )

    async def submitStoreRegistration(
        self, request: "SubmitStoreRegistrationRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "SubmitStoreRegistrationResponse":
        "Submits a live store of the account for review."
        return cast(
            "SubmitStoreRegistrationResponse",
            await self.call("submitStoreRegistration", request, idempotency_key=idempotency_key),
        )

    async def submitStoreRegistrationRequest(
        self, request: "SubmitStoreRegistrationRequestRequest", *, idempotency_key: Optional[str] = None
    ) -> "SubmitStoreRegistrationRequestResponse":
        "Requests an account, without a key."
        return cast(
            "SubmitStoreRegistrationRequestResponse",
            await self.call("submitStoreRegistrationRequest", request, idempotency_key=idempotency_key),
        )

    async def switchMode(
        self, request: "SwitchModeRequest", *, idempotency_key: Optional[str] = None
    ) -> "SwitchModeResponse":
        "Chooses sandbox or live data for this session and for later ones."
        return cast(
            "SwitchModeResponse",
            await self.call("switchMode", request, idempotency_key=idempotency_key),
        )

    async def syncERP(
        self, request: "SyncERPRequest", *, idempotency_key: Optional[str] = None
    ) -> "SyncERPResponse":
        "Reads stock, purchase orders and suppliers of an ERP system into a store."
        return cast(
            "SyncERPResponse",
            await self.call("syncERP", request, idempotency_key=idempotency_key),
        )

    async def syncPOS(
        self, request: "SyncPOSRequest", *, idempotency_key: Optional[str] = None
    ) -> "SyncPOSResponse":
        "Reads the products of a till system into a store."
        return cast(
            "SyncPOSResponse",
            await self.call("syncPOS", request, idempotency_key=idempotency_key),
        )

    async def updateAccountSettings(
        self, request: "UpdateAccountSettingsRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "UpdateAccountSettingsResponse":
        "Changes settings of the account."
        return cast(
            "UpdateAccountSettingsResponse",
            await self.call("updateAccountSettings", request, idempotency_key=idempotency_key),
        )

    async def updateClickCollectStatus(
        self, request: "UpdateClickCollectStatusRequest", *, idempotency_key: Optional[str] = None
    ) -> "UpdateClickCollectStatusResponse":
        "Moves an order to its next status."
        return cast(
            "UpdateClickCollectStatusResponse",
            await self.call("updateClickCollectStatus", request, idempotency_key=idempotency_key),
        )

    async def updateDevice(
        self, request: "UpdateDeviceRequest", *, idempotency_key: Optional[str] = None
    ) -> "UpdateDeviceResponse":
        "Changes a device."
        return cast(
            "UpdateDeviceResponse",
            await self.call("updateDevice", request, idempotency_key=idempotency_key),
        )

    async def updateItemStatus(
        self, request: "UpdateItemStatusRequest", *, idempotency_key: Optional[str] = None
    ) -> "UpdateItemStatusResponse":
        "Moves a tagged item to another status."
        return cast(
            "UpdateItemStatusResponse",
            await self.call("updateItemStatus", request, idempotency_key=idempotency_key),
        )

    async def updateLoyaltyProgram(
        self, request: "UpdateLoyaltyProgramRequest", *, idempotency_key: Optional[str] = None
    ) -> "UpdateLoyaltyProgramResponse":
        "Changes a loyalty program."
        return cast(
            "UpdateLoyaltyProgramResponse",
            await self.call("updateLoyaltyProgram", request, idempotency_key=idempotency_key),
        )

    async def updateOffer(
        self, request: "UpdateOfferRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "UpdateOfferResponse":
        "Changes an offer in all its branches. Omitted fields keep their values."
        return cast(
            "UpdateOfferResponse",
            await self.call("updateOffer", request, idempotency_key=idempotency_key),
        )

    async def updateOperator(
        self, request: "UpdateOperatorRequest", *, idempotency_key: Optional[str] = None
    ) -> "UpdateOperatorResponse":
        "Replaces the PIN or the badge of an operator. The replaced one stops working."
        return cast(
            "UpdateOperatorResponse",
            await self.call("updateOperator", request, idempotency_key=idempotency_key),
        )

    async def updateProduct(
        self, request: "UpdateProductRequest", *, idempotency_key: Optional[str] = None
    ) -> "UpdateProductResponse":
        "Changes a product."
        return cast(
            "UpdateProductResponse",
            await self.call("updateProduct", request, idempotency_key=idempotency_key),
        )

    async def updateProfile(
        self, request: "UpdateProfileRequest", *, idempotency_key: Optional[str] = None
    ) -> "UpdateProfileResponse":
        "Changes the name of the calling user."
        return cast(
            "UpdateProfileResponse",
            await self.call("updateProfile", request, idempotency_key=idempotency_key),
        )

    async def updateProtectionPolicy(
        self, request: "UpdateProtectionPolicyRequest", *, idempotency_key: Optional[str] = None
    ) -> "UpdateProtectionPolicyResponse":
        "Replaces the protection policy of a store."
        return cast(
            "UpdateProtectionPolicyResponse",
            await self.call("updateProtectionPolicy", request, idempotency_key=idempotency_key),
        )

    async def updateStore(
        self, request: "UpdateStoreRequest", *, idempotency_key: Optional[str] = None
    ) -> "UpdateStoreResponse":
        "Changes a store."
        return cast(
            "UpdateStoreResponse",
            await self.call("updateStore", request, idempotency_key=idempotency_key),
        )

    async def updateUser(
        self, request: "UpdateUserRequest", *, idempotency_key: Optional[str] = None
    ) -> "UpdateUserResponse":
        "Changes role, stores or access of a user. Ends all sessions of the user."
        return cast(
            "UpdateUserResponse",
            await self.call("updateUser", request, idempotency_key=idempotency_key),
        )

    async def updateWebhook(
        self, request: "UpdateWebhookRequest", *, idempotency_key: Optional[str] = None
    ) -> "UpdateWebhookResponse":
        "Changes the URL, the events or the secret of a webhook, or disables or enables it."
        return cast(
            "UpdateWebhookResponse",
            await self.call("updateWebhook", request, idempotency_key=idempotency_key),
        )

    async def uploadImageToProduct(
        self, request: "UploadImageToProductRequest", *, idempotency_key: Optional[str] = None
    ) -> "UploadImageToProductResponse":
        "Sets the picture of a product."
        return cast(
            "UploadImageToProductResponse",
            await self.call("uploadImageToProduct", request, idempotency_key=idempotency_key),
        )

    async def verifyPickupCode(
        self, request: "VerifyPickupCodeRequest", *, idempotency_key: Optional[str] = None
    ) -> "VerifyPickupCodeResponse":
        "Finds the order of a pick-up code and lists the goods to hand over."
        return cast(
            "VerifyPickupCodeResponse",
            await self.call("verifyPickupCode", request, idempotency_key=idempotency_key),
        )

    async def verifyProtectedItem(
        self, request: "VerifyProtectedItemRequest", *, idempotency_key: Optional[str] = None
    ) -> "VerifyProtectedItemResponse":
        "Decides whether a device may act on one item, and issues a single-use token if so."
        return cast(
            "VerifyProtectedItemResponse",
            await self.call("verifyProtectedItem", request, idempotency_key=idempotency_key),
        )

    async def verifySecurityTagDeactivation(
        self, request: "VerifySecurityTagDeactivationRequest" = {}, *, idempotency_key: Optional[str] = None
    ) -> "VerifySecurityTagDeactivationResponse":
        "Decides whether the tags of a purchase may be removed, and issues one token for all of them to a device if so."
        return cast(
            "VerifySecurityTagDeactivationResponse",
            await self.call("verifySecurityTagDeactivation", request, idempotency_key=idempotency_key),
        )

    async def voidSale(
        self, request: "VoidSaleRequest", *, idempotency_key: Optional[str] = None
    ) -> "VoidSaleResponse":
        "Voids a sale of your own till: its rights end, and its goods alarm again."
        return cast(
            "VoidSaleResponse",
            await self.call("voidSale", request, idempotency_key=idempotency_key),
        )
