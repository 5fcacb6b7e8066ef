// Generated from presets/checkout by `scripts/generate-configs.mjs`; do not edit.
import { config } from "../compat/rate-limit-config.js";

/** The limits of presets/checkout. The server decides by its catalog, not by these numbers. */
export const RATE_LIMIT_CONFIGS = {
  ADMIN_ACTION: config("admin_action", 60, 1, 10),
  ASAAS_CREATE_PAYMENT: config("asaas_create_payment", 60, 1, 2),
  BUYER_AUTH_LOGIN: config("buyer_auth_login", 10, 15, 30),
  BUYER_AUTH_REGISTER: config("buyer_auth_register", 5, 60, 60),
  BUYER_AUTH_RESET: config("buyer_auth_reset", 5, 60, 120),
  CREATE_ORDER: config("create_order", 60, 1, 2),
  CREATE_PIX: config("create_pix", 60, 1, 2),
  DECRYPT_DATA: config("decrypt_data", 40, 1, 10),
  DEFAULT: config("default", 60, 1, 5),
  GDPR_FORGET: config("gdpr_forget", 5, 60, 120),
  GDPR_REQUEST: config("gdpr_request", 5, 60, 60),
  MEMBERS_AREA: config("members_area", 120, 1, 5),
  MEMBERS_AREA_WRITE: config("members_area_write", 60, 1, 5),
  MERCADOPAGO_CREATE_PAYMENT: config("mercadopago_create_payment", 60, 1, 2),
  PRODUCER_AUTH_LOGIN: config("producer_auth_login", 15, 15, 30),
  PRODUCER_AUTH_RESET: config("producer_auth_reset", 5, 60, 60),
  STRIPE_CREATE_PAYMENT: config("stripe_create_payment", 60, 1, 2),
  TURNSTILE_VERIFY: config("turnstile_verify", 30, 1, 5),
  VAULT_SAVE: config("vault_save", 40, 1, 5),
  WEBHOOK: config("webhook", 300, 1, 5),
  WEBHOOK_TEST: config("webhook_test", 30, 1, 5),
} as const;
