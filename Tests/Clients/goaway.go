// Pushes 200 notifications at once over Go's net/http, which repeats what a GOAWAY says was not
// processed. Prints the number of each that was accepted.
//
//	goaway ADDRESS PROVIDER_TOKEN TOPIC CA_FILE
package main

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
)

func main() {
	address, token, topic, file := os.Args[1], os.Args[2], os.Args[3], os.Args[4]
	pem, err := os.ReadFile(file)
	if err != nil {
		panic(err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(pem)
	client := http.Client{Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true}}
	body := []byte(`{"aps":{"alert":"` + string(bytes.Repeat([]byte("x"), 500)) + `"}}`)
	push := func(number int) {
		request, _ := http.NewRequest("POST",
			fmt.Sprintf("https://%s/3/device/%064x", address, number), bytes.NewReader(body))
		request.Header.Set("authorization", "bearer "+token)
		request.Header.Set("apns-topic", topic)
		request.Header.Set("apns-id", fmt.Sprintf("00000000-0000-4000-8000-%012d", number))
		response, err := client.Do(request)
		if err != nil {
			fmt.Fprintln(os.Stderr, number, err)
			return
		}
		io.Copy(io.Discard, response.Body)
		response.Body.Close()
		if response.StatusCode == 200 {
			fmt.Println(number)
		}
	}
	push(0)
	var all sync.WaitGroup
	for number := 1; number < 200; number++ {
		all.Add(1)
		go func(number int) {
			defer all.Done()
			push(number)
		}(number)
	}
	all.Wait()
}
