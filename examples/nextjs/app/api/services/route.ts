export const dynamic = "force-dynamic";

export function GET() {
  return Response.json([{ name: "haircut", minutes: 30 }]);
}
