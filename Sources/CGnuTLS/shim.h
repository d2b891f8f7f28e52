#include <stddef.h>
#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>
#include <gnutls/x509.h>

// Signs a message by ECDSA with SHA-256, the nonce of RFC 6979 and a key in DER (PKCS#8). (With a
// key in PEM, GnuTLS would leave the base64 in memory.) Writes the signature in DER and returns its
// byte count; 0 if GnuTLS refuses, or if the signature exceeds `signature_size`.
static inline size_t gnutls_sign_reproducibly(
    const unsigned char *der, size_t der_size, const unsigned char *message, size_t message_size,
    unsigned char *signature, size_t signature_size)
{
    gnutls_datum_t key_text = {(unsigned char *)der, (unsigned int)der_size};
    gnutls_datum_t input = {(unsigned char *)message, (unsigned int)message_size};
    gnutls_datum_t output = {NULL, 0};
    gnutls_privkey_t key;
    size_t count = 0;
    if (gnutls_privkey_init(&key) != GNUTLS_E_SUCCESS)
        return 0;
    if (gnutls_privkey_import_x509_raw(key, &key_text, GNUTLS_X509_FMT_DER, NULL, 0)
            == GNUTLS_E_SUCCESS
        && gnutls_privkey_sign_data2(key, GNUTLS_SIGN_ECDSA_SHA256,
               GNUTLS_PRIVKEY_FLAG_REPRODUCIBLE, &input, &output) == GNUTLS_E_SUCCESS
        && output.size <= signature_size) {
        for (; count < output.size; count++)
            signature[count] = output.data[count];
    }
    gnutls_free(output.data);
    gnutls_privkey_deinit(key);
    return count;
}
