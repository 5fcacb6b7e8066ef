// Generated from presets/checkout by `scripts/generate-configs.mjs`; do not edit.
import { rateLimitConfig } from "../compat/rate-limit-config.js";

/** The limits of presets/checkout. The server decides by its catalog, not by these numbers. */
export const RATE_LIMIT_CONFIGS = {
  ADMIN_ACTION: rateLimitConfig("admin_action", 60, 1, 10),
  ASAAS_CREATE_PAYMENT: rateLimitConfig("asaas_create_payment", 60, 1, 2),
  BUYER_AUTH_LOGIN: rateLimitConfig("buyer_auth_login", 10, 15, 30),
  BUYER_AUTH_REGISTER: rateLimitConfig("buyer_auth_register", 5, 60, 60),
  BUYER_AUTH_RESET: rateLimitConfig("buyer_auth_reset", 5, 60, 120),
  CREATE_ORDER: rateLimitConfig("create_order", 60, 1, 2),
  CREATE_PIX: rateLimitConfig("create_pix", 60, 1, 2),
  DECRYPT_DATA: rateLimitConfig("decrypt_data", 40, 1, 10),
  DEFAULT: rateLimitConfig("default", 60, 1, 5),
  GDPR_FORGET: rateLimitConfig("gdpr_forget", 5, 60, 120),
  GDPR_REQUEST: rateLimitConfig("gdpr_request", 5, 60, 60),
  MEMBERS_AREA: rateLimitConfig("members_area", 120, 1, 5),
  MEMBERS_AREA_WRITE: rateLimitConfig("members_area_write", 60, 1, 5),
  MERCADOPAGO_CREATE_PAYMENT: rateLimitConfig("mercadopago_create_payment", 60, 1, 2),
  PRODUCER_AUTH_LOGIN: rateLimitConfig("producer_auth_login", 15, 15, 30),
  PRODUCER_AUTH_RESET: rateLimitConfig("producer_auth_reset", 5, 60, 60),
  STRIPE_CREATE_PAYMENT: rateLimitConfig("stripe_create_payment", 60, 1, 2),
  TURNSTILE_VERIFY: rateLimitConfig("turnstile_verify", 30, 1, 5),
  VAULT_SAVE: rateLimitConfig("vault_save", 40, 1, 5),
  WEBHOOK: rateLimitConfig("webhook", 300, 1, 5),
  WEBHOOK_TEST: rateLimitConfig("webhook_test", 30, 1, 5),
} as const;
