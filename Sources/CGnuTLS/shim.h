#include <dlfcn.h>
#include <stddef.h>
#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

// The functions of GnuTLS that are used. The library is loaded when the first of them is needed: with
// OpenSSL 3.2 and later that is never, and its nine libraries take time to load.
typedef struct {
    __typeof__(&gnutls_privkey_init) privkey_init;
    __typeof__(&gnutls_privkey_import_x509_raw) privkey_import;
    __typeof__(&gnutls_privkey_sign_data2) privkey_sign;
    __typeof__(&gnutls_privkey_deinit) privkey_deinit;
    gnutls_free_function *free;
} gnutls_functions;

// Loads the library, which is never unloaded; call it once. Returns NULL if it is missing, or lacks a
// function.
static inline const gnutls_functions *gnutls_load(void)
{
    static gnutls_functions functions;
    // Global and without a handle, so that a preloaded library can take the place of a function.
    if (!dlopen("libgnutls.so.30", RTLD_NOW | RTLD_GLOBAL))
        return NULL;
#define GNUTLS_FIND(member, name) \
    ((functions.member = (__typeof__(functions.member))dlsym(NULL, name)) != NULL)
    return GNUTLS_FIND(privkey_init, "gnutls_privkey_init")
        && GNUTLS_FIND(privkey_import, "gnutls_privkey_import_x509_raw")
        && GNUTLS_FIND(privkey_sign, "gnutls_privkey_sign_data2")
        && GNUTLS_FIND(privkey_deinit, "gnutls_privkey_deinit")
        && GNUTLS_FIND(free, "gnutls_free")
        ? &functions : NULL;
#undef GNUTLS_FIND
}

// Signs a message by ECDSA with SHA-256, the nonce of RFC 6979 and a key in DER (PKCS#8). (With a
// key in PEM, GnuTLS would leave the base64 in memory.) Writes the signature in DER and returns its
// byte count; 0 if GnuTLS refuses, or if the signature exceeds `signature_size`.
static inline size_t gnutls_sign_reproducibly(
    const gnutls_functions *functions, const unsigned char *der, size_t der_size,
    const unsigned char *message, size_t message_size, unsigned char *signature,
    size_t signature_size)
{
    gnutls_datum_t key_text = {(unsigned char *)der, (unsigned int)der_size};
    gnutls_datum_t input = {(unsigned char *)message, (unsigned int)message_size};
    gnutls_datum_t output = {NULL, 0};
    gnutls_privkey_t key;
    size_t count = 0;
    if (functions->privkey_init(&key) != GNUTLS_E_SUCCESS)
        return 0;
    if (functions->privkey_import(key, &key_text, GNUTLS_X509_FMT_DER, NULL, 0)
            == GNUTLS_E_SUCCESS
        && functions->privkey_sign(key, GNUTLS_SIGN_ECDSA_SHA256,
               GNUTLS_PRIVKEY_FLAG_REPRODUCIBLE, &input, &output) == GNUTLS_E_SUCCESS
        && output.size <= signature_size) {
        for (; count < output.size; count++)
            signature[count] = output.data[count];
    }
    (*functions->free)(output.data);
    functions->privkey_deinit(key);
    return count;
}
