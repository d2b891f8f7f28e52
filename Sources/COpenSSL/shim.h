#include <sys/prctl.h>
#include <sys/types.h>
#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/obj_mac.h>
#include <openssl/params.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <openssl/provider.h>
#include <openssl/rand.h>
#include <openssl/conf.h>
#include <openssl/core_names.h>
#if !defined(OPENSSL_NO_ENGINE) && OPENSSL_VERSION_MAJOR < 4
#include <openssl/engine.h>
#endif
#include <openssl/sha.h>
#include <openssl/ssl.h>
#include <openssl/store.h>
#include <openssl/ui.h>
#include <openssl/x509v3.h>

// OpenSSL's macros, as functions that Swift can call.

static inline long openssl_set_host_name(SSL *ssl, const char *name) {
    return SSL_set_tlsext_host_name(ssl, name);
}
static inline int openssl_set_versions(SSL_CTX *context, int lowest, int highest) {
    return SSL_CTX_set_min_proto_version(context, lowest) == 1
        && SSL_CTX_set_max_proto_version(context, highest) == 1;
}
// Disables compression and renegotiation (RFC 9113 section 9.2.1), and tickets:
// `openssl_issue_tickets` permits those of TLS 1.3, whose sessions agree on a new key nevertheless.
static inline void openssl_set_common_options(SSL_CTX *context) {
    SSL_CTX_set_options(context,
        SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET);
    SSL_CTX_set_mode(context, SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
}
// Passes sessions only to the callback; OpenSSL does not keep them.
static inline void openssl_keep_sessions(SSL_CTX *context) {
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_CLIENT | SSL_SESS_CACHE_NO_INTERNAL);
}
// Makes a server issue tickets. A ticket contains all that the server needs to resume the session.
static inline int openssl_issue_tickets(SSL_CTX *context) {
    static const unsigned char name[] = "broadside";
    SSL_CTX_clear_options(context, SSL_OP_NO_TICKET);
    return SSL_CTX_set_num_tickets(context, 1) == 1
        && SSL_CTX_set_session_id_context(context, name, sizeof name - 1) == 1;
}
static inline int openssl_add_chain_certificate(SSL_CTX *context, X509 *certificate) {
    return SSL_CTX_add1_chain_cert(context, certificate) == 1;
}
static inline void openssl_wait_for_read(BIO *bio) { BIO_set_retry_read(bio); }
static inline void openssl_wait_for_write(BIO *bio) { BIO_set_retry_write(bio); }
static inline void openssl_clear_retry(BIO *bio) { BIO_clear_retry_flags(bio); }
static inline EVP_PKEY *openssl_generate_key(const char *curve) { return EVP_EC_gen(curve); }
// Makes an elliptic curve key be written in the form of Apple's keys: with the curve's name, and with
// the public key as an uncompressed point. Returns 0 if the key has no such form.
static inline int openssl_use_common_form(EVP_PKEY *key) {
    return EVP_PKEY_set_utf8_string_param(key, OSSL_PKEY_PARAM_EC_ENCODING, "named_curve") == 1
        && EVP_PKEY_set_utf8_string_param(
               key, OSSL_PKEY_PARAM_EC_POINT_CONVERSION_FORMAT, "uncompressed") == 1
        && EVP_PKEY_set_int_param(key, OSSL_PKEY_PARAM_EC_INCLUDE_PUBLIC, 1) == 1;
}
static inline long openssl_memory(BIO *bio, char **bytes) { return BIO_get_mem_data(bio, bytes); }
// Returns the flags for writing a name in the form of RFC 2253, in UTF-8.
static inline unsigned long openssl_name_flags(void) {
    return XN_FLAG_RFC2253 & ~ASN1_STRFLGS_ESC_MSB;
}
static inline int openssl_name_count(const GENERAL_NAMES *names) {
    return sk_GENERAL_NAME_num(names);
}
static inline const GENERAL_NAME *openssl_name(const GENERAL_NAMES *names, int index) {
    return sk_GENERAL_NAME_value(names, index);
}
// Returns the text of a DNS name or the bytes of an IP address; NULL for all other kinds of names.
static inline const ASN1_STRING *openssl_name_text(const GENERAL_NAME *name) {
    return name->type == GEN_DNS ? name->d.dNSName
        : name->type == GEN_IPADD ? name->d.iPAddress : NULL;
}
static inline int openssl_name_is_address(const GENERAL_NAME *name) {
    return name->type == GEN_IPADD;
}
static inline int openssl_certificate_count(STACK_OF(X509) *certificates) {
    return certificates ? sk_X509_num(certificates) : 0;
}
static inline X509 *openssl_certificate(STACK_OF(X509) *certificates, int index) {
    return sk_X509_value(certificates, index);
}
static inline void openssl_free_certificates(STACK_OF(X509) *certificates) {
    sk_X509_pop_free(certificates, X509_free);
}
// Returns whether a call failed because no loaded provider has the algorithm. Leaves the error
// queue unchanged.
static inline int openssl_lacks_algorithm(void) {
    unsigned long first = ERR_peek_error();
    return ERR_GET_REASON(first) == ERR_R_UNSUPPORTED
        || ERR_GET_REASON(ERR_peek_last_error()) == ERR_R_UNSUPPORTED;
}
// Returns whether a private key was not read because no loaded provider has the cipher that encrypts
// it. This is the last error for PKCS#8; for traditional PEM, it is the first one, from EVP. A wrong
// passphrase may leave the same reason in another place. Leaves the error queue unchanged.
static inline int openssl_lacks_cipher(void) {
    unsigned long first = ERR_peek_error();
    return ERR_GET_REASON(ERR_peek_last_error()) == ERR_R_UNSUPPORTED
        || (ERR_GET_LIB(first) == ERR_LIB_EVP && ERR_GET_REASON(first) == ERR_R_UNSUPPORTED);
}
// Requests the nonce of RFC 6979 (OpenSSL 3.2 and later), so that the same bytes have the same
// signature. Returns 0 if the library does not have this parameter, or refuses it.
static inline int openssl_sign_reproducibly(EVP_PKEY_CTX *context) {
    const OSSL_PARAM *settable = EVP_PKEY_CTX_settable_params(context);
    unsigned int kind = 1;
    OSSL_PARAM parameters[2];
    if (!settable || !OSSL_PARAM_locate_const(settable, "nonce-type"))
        return 0;
    parameters[0] = OSSL_PARAM_construct_uint("nonce-type", &kind);
    parameters[1] = OSSL_PARAM_construct_end();
    return EVP_PKEY_CTX_set_params(context, parameters) == 1;
}
// Not part of OpenSSL, but used to protect keys. Swift cannot call prctl, which has variable
// arguments.
static inline void openssl_forbid_dumps(void) { prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); }

// Fails for each prompt, so that no PIN is requested interactively.
static inline int openssl_ask_nobody(UI *ui, UI_STRING *question) {
    (void)ui, (void)question;
    return -1;
}
static inline UI_METHOD *openssl_nobody(void) {
    UI_METHOD *nobody = UI_create_method("nobody");
    if (nobody)
        UI_method_set_reader(nobody, openssl_ask_nobody);
    return nobody;
}
// Finds a private key in a PKCS#11 token through OpenSSL's provider `pkcs11`. Provider and key are
// in a separate library context, so that the token computes nothing else. The context must exist as
// long as the key.
static inline EVP_PKEY *openssl_token_key_of_provider(
    const char *uri, OSSL_LIB_CTX **context, int *is_installed) {
    EVP_PKEY *key = NULL;
    char *settings = CONF_get1_default_config_file();
    UI_METHOD *nobody = openssl_nobody();
    OSSL_STORE_CTX *store = NULL;
    *is_installed = 0;
    *context = OSSL_LIB_CTX_new();
    if (*context) {
        if (settings)
            OSSL_LIB_CTX_load_config(*context, settings);
        *is_installed = OSSL_PROVIDER_load(*context, "pkcs11") != NULL
            && OSSL_PROVIDER_load(*context, "default") != NULL;
    }
    OPENSSL_free(settings);
    // The provider's own prompts use the default method.
    if (*is_installed && nobody) {
        UI_set_default_method(nobody);
        store = OSSL_STORE_open_ex(uri, *context, NULL, nobody, NULL, NULL, NULL, NULL);
    }
    while (store && !key && !OSSL_STORE_eof(store)) {
        OSSL_STORE_INFO *info = OSSL_STORE_load(store);
        if (!info && OSSL_STORE_error(store))
            break;
        if (info && OSSL_STORE_INFO_get_type(info) == OSSL_STORE_INFO_PKEY)
            key = OSSL_STORE_INFO_get1_PKEY(info);
        OSSL_STORE_INFO_free(info);
    }
    if (store)
        OSSL_STORE_close(store);
    if (!key) {
        OSSL_LIB_CTX_free(*context);
        *context = NULL;
    }
    return key;
}
// Finds a private key in a PKCS#11 token through OpenSSL's engine `pkcs11`, which is never
// unloaded.
static inline EVP_PKEY *openssl_token_key_of_engine(
    const char *uri, const char *module, int *is_installed) {
    *is_installed = 0;
#if !defined(OPENSSL_NO_ENGINE) && OPENSSL_VERSION_MAJOR < 4
    UI_METHOD *nobody = openssl_nobody();
    ENGINE *engine;
    EVP_PKEY *key = NULL;
    OPENSSL_init_crypto(OPENSSL_INIT_ENGINE_DYNAMIC, NULL);
    engine = ENGINE_by_id("pkcs11");
    if (engine && nobody) {
        *is_installed = 1;
        ENGINE_ctrl_cmd_string(engine, "QUIET", NULL, 0);
        if ((!module || ENGINE_ctrl_cmd_string(engine, "MODULE_PATH", module, 0))
            && ENGINE_init(engine))
            key = ENGINE_load_private_key(engine, uri, nobody, NULL);
    }
    return key;
#else
    (void)uri, (void)module;
    return NULL;
#endif
}
// Begins a signature with SHA-256 and a key of the given library context; NULL: the default
// context.
static inline int openssl_begin_signature(
    EVP_MD_CTX *context, OSSL_LIB_CTX *library, EVP_PKEY *key) {
    return EVP_DigestSignInit_ex(context, NULL, "SHA256", library, NULL, key, NULL);
}
