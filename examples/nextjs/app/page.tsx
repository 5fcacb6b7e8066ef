export default function Page() {
  return <h1>Bookings</h1>;
}
